"""Which handler, decoder and encoder serve a frame: looked up once per API, version and kind of listener."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from struct import error as StructError  # noqa: N812  # an exception's name
from typing import TYPE_CHECKING, Any

from millstream.protocol.apis import API_VERSIONS_KEY, api
from millstream.protocol.codec import decoder, encoder, piecewise_encoder
from millstream.protocol.errors import MalformedMessage
from millstream.protocol.frames import skip_tags

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.dispatch import Handling

_START = Struct(">hhih")
PRODUCE_KEY = 0
FETCH_KEY = 1


class UnservedRequest(Exception):
    """The request cannot be answered: the connection is closed, as Kafka does."""


@dataclass(frozen=True, slots=True)
class Call:
    """All that is needed to serve one version of one API."""

    handling: Handling
    version: int
    tagged_request_header: bool
    tagged_response_header: bool
    decode: Callable[[memoryview, int], tuple[Any, int]]
    # Among the pieces of an answer may be stretches of files, which to the encoder are batches like any other.
    encode: Callable[[Any, bytearray], list[Any] | None]


class Calls:
    """The calls that one kind of listener takes, compiled when first used."""

    def __init__(self, handlers: dict[int, Handling], *, controller: bool, plain_bytes_max: int) -> None:
        self._plain_bytes_max = plain_bytes_max
        self.handlers = {
            key: handling
            for key, handling in handlers.items()
            if (handling.on_controller if controller else handling.on_broker)
        }
        self._compiled: dict[int, Call] = {}

    def find(self, frame: memoryview) -> tuple[Call, int, str | None, int]:
        """(call, correlation id, client id, where the body starts)"""
        try:
            api_key, version, correlation_id, client_id_length = _START.unpack_from(frame)
        except StructError:
            raise MalformedMessage(f"a frame of {len(frame)} bytes is too short for a request header") from None
        if api_key != PRODUCE_KEY and len(frame) > self._plain_bytes_max:
            raise UnservedRequest(f"{len(frame)} bytes without records are above the limit, {self._plain_bytes_max}")
        call = self._compiled.get(api_key << 16 | version)
        if call is None:
            call = self._compile(api_key, version)
        position = 10
        client_id = None
        if client_id_length >= 0:
            position = 10 + client_id_length
            if position > len(frame):
                raise MalformedMessage("the client id is longer than its frame")
            try:
                client_id = str(frame[10:position], "utf-8")
            except UnicodeDecodeError:
                raise MalformedMessage("the client id is not UTF-8") from None
        elif client_id_length != -1:
            raise MalformedMessage(f"a client id of {client_id_length} bytes")
        if call.tagged_request_header:
            position = skip_tags(frame, position)
        return call, correlation_id, client_id, position

    def _compile(self, api_key: int, version: int) -> Call:
        handling = self.handlers.get(api_key)
        if handling is None:
            raise UnservedRequest(f"API {api_key} is not served on this listener")
        known = api(api_key)
        if version not in handling.served:
            if api_key != API_VERSIONS_KEY:
                raise UnservedRequest(f"{handling.name} version {version} is not served")
            return self._api_versions_of_the_future(handling)
        flexible = version in known.flexible
        call = Call(
            handling=handling,
            version=version,
            tagged_request_header=flexible,
            # ApiVersions answers before the peer knows what we speak, so its header never changes.
            tagged_response_header=flexible and api_key != API_VERSIONS_KEY,
            decode=decoder(known.request, version),
            encode=piecewise_encoder(known.response, version)
            if api_key == FETCH_KEY
            else encoder(known.response, version),
        )
        self._compiled[api_key << 16 | version] = call
        return call

    @staticmethod
    def _api_versions_of_the_future(handling: Handling) -> Call:
        """KIP-511: a version we don't know is answered with UNSUPPORTED_VERSION in version 0; its body is not read."""
        known = api(API_VERSIONS_KEY)
        return Call(
            handling=handling,
            version=-1,
            tagged_request_header=False,
            tagged_response_header=False,
            decode=lambda frame, _: (known.request(), len(frame)),
            encode=encoder(known.response, 0),
        )
