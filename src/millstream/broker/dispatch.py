"""From a decoded request to its handler: the one table of what this broker serves.

    @handles(CreateTopicsRequest, versions="2-7")
    async def create_topics(request: CreateTopicsRequest, ctx: Context) -> CreateTopicsResponse: ...

ApiVersions is computed from this table, so what is not handled is not advertised. A handler is one of:

- a coroutine function: runs as a task; the connection's next request starts when it has finished, as in Kafka;
- a plain function that returns the response at once: no task, no future (the hot path);
- a plain function that returns a `Deferred`: the answer comes later (a long poll, an append that waits for the high
  watermark) while the connection's next requests already start; answers still leave in request order.

A request that only the active controller can answer is declared with `forwards=True`: a broker that is not the active
controller sends it on (forwarding.py), and the handler runs there.

A handler that returns None sends no answer (acks=0). A BrokerError that escapes a handler closes nothing: `refuse`
turns it into the API's own error response where the handler declared how, otherwise the connection is closed.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from millstream.protocol.declare import Versions, declaration

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.connection import Connection
    from millstream.broker.node import Node
    from millstream.protocol.declare import Message
    from millstream.security.operations import Operation, ResourceType

Handler = TypeVar("Handler", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True)
class Handling:
    """One row of the table."""

    api_key: int
    name: str
    request: type[Message]
    served: Versions
    advertised: Versions
    call: Callable[..., Any]
    on_broker: bool
    on_controller: bool
    forwards: bool


HANDLERS: dict[int, Handling] = {}


def handles(
    request: type, *, versions: str, advertise_from: int | None = None, forwards: bool = False
) -> Callable[[Handler], Handler]:
    """Register the function below as the handler of a request, in these versions."""
    declared = declaration(request)
    served = Versions.parse(versions)
    if declared.api_key is None or served.first < declared.versions.first or served.last > declared.versions.last:
        raise ValueError(f"{declared.name} declares versions {declared.versions}, not {versions}")
    api_key = declared.api_key

    def register(function: Handler) -> Handler:
        if api_key in HANDLERS:
            raise ValueError(f"{declared.name} has two handlers")
        HANDLERS[api_key] = Handling(
            api_key=api_key,
            name=declared.name.removesuffix("Request"),
            request=request,
            served=served,
            advertised=served if advertise_from is None else Versions(advertise_from, served.last),
            call=function,
            on_broker="broker" in declared.listeners,
            on_controller="controller" in declared.listeners,
            forwards=forwards,
        )
        return function

    return register


def load_handlers() -> dict[int, Handling]:
    """Import every module of `broker/handlers`, each of which registers what it handles."""
    from millstream.broker import handlers

    for module in pkgutil.iter_modules(handlers.__path__):
        importlib.import_module(f"{handlers.__name__}.{module.name}")
    return HANDLERS


class Context:
    """What a handler may know of the request it answers besides the request itself."""

    __slots__ = ("api_key", "broker", "client_id", "connection", "version")

    def __init__(self, broker: Node, connection: Connection, api_key: int, version: int, client_id: str | None) -> None:
        self.broker = broker
        self.connection = connection
        self.api_key = api_key
        self.version = version
        self.client_id = client_id

    @property
    def principal(self) -> str:
        return self.connection.principal

    @property
    def listener(self) -> str:
        return self.connection.listener.name

    @property
    def from_controller_listener(self) -> bool:
        return self.connection.listener.is_controller

    @property
    def local_address(self) -> tuple[str, int]:
        """The address that the client dialled, as far as this end of the connection can tell."""
        return self.connection.local_address

    def allows(self, operation: Operation, resource_type: ResourceType, name: str | None) -> bool:
        """Whether the authorizer lets this request's principal do that."""
        return self.broker.authorizer.allows(self.principal, self.connection.peer_host, operation, resource_type, name)


class ForwardedContext(Context):
    """A client's request that another broker sent on in an Envelope: what that broker knows of the client counts."""

    __slots__ = ("_client_host", "_principal")

    def __init__(
        self, envelope: Context, api_key: int, version: int, client_id: str | None, principal: str, client_host: str
    ) -> None:
        super().__init__(envelope.broker, envelope.connection, api_key, version, client_id)
        self._principal = principal
        self._client_host = client_host

    @property
    def principal(self) -> str:
        return self._principal

    @property
    def from_controller_listener(self) -> bool:
        return False

    def allows(self, operation: Operation, resource_type: ResourceType, name: str | None) -> bool:
        return self.broker.authorizer.allows(self._principal, self._client_host, operation, resource_type, name)


class OwnContext(Context):
    """What this node asks itself, where it is the active controller: no connection, and nobody to be checked."""

    __slots__ = ()

    def __init__(self, broker: Node, api_key: int, version: int) -> None:
        super().__init__(broker, cast("Connection", None), api_key, version, None)

    @property
    def principal(self) -> str:
        return "User:ANONYMOUS"

    @property
    def from_controller_listener(self) -> bool:
        return True

    def allows(self, operation: Operation, resource_type: ResourceType, name: str | None) -> bool:
        return True


async def answer_of(outcome: Any) -> Any:
    """The response of a handler, whichever of the three kinds it is."""
    if inspect.isawaitable(outcome):
        return await outcome
    return await outcome.wait() if isinstance(outcome, Deferred) else outcome


class Deferred:
    """An answer that comes later. `finish` counts once; `abandon` says that nobody waits for it any more.

    Whoever made it usually holds it, and is to be called by it: a circle, of which 32 objects hung for each record that
    passed a leader, until the collector came. So what is done lets go of everybody.
    """

    __slots__ = ("_listener", "_on_abandon", "done", "response")

    def __init__(self, on_abandon: Callable[[], None] | None = None) -> None:
        self.done = False
        self.response: Any = None
        self._listener: Callable[[], None] | None = None
        self._on_abandon = on_abandon

    def finish(self, response: Any) -> None:
        if self.done:
            return
        self.done = True
        self.response = response
        listener, self._listener, self._on_abandon = self._listener, None, None
        if listener is not None:
            listener()

    def when_done(self, listener: Callable[[], None]) -> None:
        self._listener = listener

    async def wait(self) -> Any:
        """The response, for a handler that is a coroutine."""
        if not self.done:
            came = asyncio.Event()
            self._listener = came.set
            try:
                await came.wait()
            finally:
                self.abandon()
        return self.response

    def abandon(self) -> None:
        if not self.done:
            self.done = True
            on_abandon, self._listener, self._on_abandon = self._on_abandon, None, None
            if on_abandon is not None:
                on_abandon()
