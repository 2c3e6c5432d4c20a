"""The client: one object per cluster, every API through one call.

    async with Client({"bootstrap.servers": "localhost:9092"}) as client:
        response = await client.call(DescribeClusterRequest(), node=ANY)

`call` sends a request once, at the highest version both sides speak, to a broker, to any broker, to the controller, to
a partition's leader or to a coordinator. `retrying` runs a whole operation again while its error is one that passes
(a leader that moves, a broker that restarts) and there is time. What stands on it (`admin/`, `produce`, `fetch`,
`offsets`) is functions that take the client first, so that `sync.SyncClient` offers all of them without a copy.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.client.errors import ClientError, Refusal, TimedOut, partition_subject, refuse
from millstream.client.metadata import Metadata
from millstream.client.nodes import Broker, Nodes
from millstream.client.options import Address, Options
from millstream.client.ports import real_ports
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping
    from typing import Self

    from millstream.client.connection import Connection
    from millstream.client.nodes import Lane
    from millstream.client.ports import ClientPorts

    T = TypeVar("T")


class Somewhere(Enum):
    """Brokers that are named by what they are."""

    ANY = "any"
    CONTROLLER = "controller"


ANY = Somewhere.ANY
CONTROLLER = Somewhere.CONTROLLER


@dataclass(frozen=True, slots=True)
class LeaderOf:
    """The broker that leads a partition."""

    topic: str
    partition: int


class CoordinatorKind(Enum):
    """What FindCoordinator looks for."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


@dataclass(frozen=True, slots=True)
class CoordinatorOf:
    """The broker that coordinates a group or a transactional id."""

    key: str
    kind: CoordinatorKind = CoordinatorKind.GROUP


Node = int | Somewhere | LeaderOf | CoordinatorOf


class Client:
    """A connection to one cluster. Use it from one event loop."""

    def __init__(self, options: Mapping[str, str] | Options, *, ports: ClientPorts | None = None) -> None:
        self.options = options if isinstance(options, Options) else Options.parse(options)
        self.ports = ports or real_ports()
        self.nodes = Nodes(self.options, self.ports)
        self.metadata = Metadata(self.nodes, self.call, self.options.metadata_age_ms_max)
        # When a topic was asked for the largest batch it takes, and the answer; see limits.py.
        self.batch_limits: dict[str, tuple[float, int | None]] = {}
        self._coordinators: dict[CoordinatorOf, int] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self.nodes.close()

    async def call(
        self,
        request: object,
        *,
        node: Node = ANY,
        timeout_ms: int | None = None,
        lane: Lane = "calls",
        at_least: int = 0,
        at_most: int = 32767,
    ) -> Any:
        """Send one request and return its response; errors inside the response are the caller's.

        `timeout_ms` is how long to wait for the answer: for requests that wait on the broker (a long poll, a topic
        that is created) give that wait, and the client's own patience comes on top.
        """
        connection = await self.connection(node, lane)
        version = connection.pick_version(type(request), at_least=at_least, at_most=at_most)
        patience_ms = self.options.request_timeout_ms + (timeout_ms or 0)
        return await connection.call(request, version, timeout_ms=patience_ms)

    async def connection(self, node: Node, lane: Lane = "calls") -> Connection:
        """An open connection to where `node` points."""
        if node is ANY:
            return await self.nodes.to_any()
        return await self.nodes.to(await self.resolve(node), lane)

    async def resolve(self, node: Node) -> int:
        """The id of the broker that `node` points at."""
        match node:
            case int():
                if node not in self.nodes.brokers:
                    await self.metadata.refresh_cluster()
                return node
            case LeaderOf(topic, partition):
                return await self._leader(topic, partition)
            case CoordinatorOf():
                return await self._coordinator(node)
            case Somewhere.CONTROLLER:
                if self.metadata.controller_id not in self.nodes.brokers:
                    await self.metadata.refresh_cluster()
                refuse(ErrorCode.NOT_CONTROLLER if self.metadata.controller_id < 0 else 0, "no controller is known")
                return self.metadata.controller_id
            case _:
                raise AssertionError(f"any broker has no id: {node}")

    async def _leader(self, topic: str, partition: int) -> int:
        found = (await self.metadata.topic(topic)).partition(partition)
        if found.leader_id < 0:
            self.metadata.forget(topic)
            raise Refusal(ErrorCode.LEADER_NOT_AVAILABLE, subject=partition_subject(topic, partition))
        return found.leader_id

    async def _coordinator(self, wanted: CoordinatorOf) -> int:
        if wanted not in self._coordinators:
            self._coordinators[wanted] = await self._find_coordinator(wanted)
        return self._coordinators[wanted]

    async def _find_coordinator(self, wanted: CoordinatorOf) -> int:
        subject = f"{wanted.kind.name.lower()} {wanted.key!r}"
        response = await self.call(
            FindCoordinatorRequest(key=wanted.key, key_type=wanted.kind.value, coordinator_keys=[wanted.key])
        )
        # Up to version 3 the answer is one coordinator in the response itself, later a list.
        found = response.coordinators[0] if response.coordinators else response
        refuse(found.error_code, found.error_message, subject=subject)
        self.nodes.brokers.setdefault(found.node_id, Broker(found.node_id, Address(found.host, found.port)))
        node_id: int = found.node_id
        return node_id

    async def retrying(
        self,
        attempt: Callable[[], Awaitable[T]],
        *,
        timeout_ms: int | None = None,
        final: Collection[ErrorCode] = (),
        topic: str | None = None,
        past_silence: bool = False,
    ) -> T:
        """Run `attempt` until it succeeds, fails for good, or the time is up; then its last error is raised.

        `final` are codes that pass in general but not here: a topic that is asked for by name and does not exist.
        `topic` is forgotten between attempts, and so are the controller and all coordinators. A broker that does not
        answer ends it all, since a person who asks should hear of it; with `past_silence` another may answer, if one
        has taken its place by then.
        """
        loop = asyncio.get_running_loop()
        patience_ms = self.options.api_timeout_ms if timeout_ms is None else timeout_ms
        deadline_s = loop.time() + patience_ms / 1000
        backoff_ms = self.options.retry_backoff_ms
        while True:
            try:
                return await attempt()
            except ClientError as error:
                if not error.retriable or (isinstance(error, Refusal) and error.code in final):
                    raise
                # Jitter of a fifth, so that many clients of one broker don't come back together.
                wait_s = backoff_ms * (900 + self.ports.random.below(200)) / 1_000_000
                silent = isinstance(error, TimedOut) and not past_silence
                if silent or loop.time() + wait_s >= deadline_s:
                    raise
            self.metadata.controller_id = -1
            self._coordinators.clear()
            if topic is not None:
                self.metadata.forget(topic)
            await asyncio.sleep(wait_s)
            backoff_ms = min(2 * backoff_ms, self.options.retry_backoff_ms_max)
