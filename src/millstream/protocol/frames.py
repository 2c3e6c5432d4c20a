"""Requests and responses with their headers, as they travel in length-prefixed frames.

A request's header says API, version, correlation id and client id; a response's has the correlation id only. Either
ends with tagged fields where the API's version is flexible, except that ApiVersions responses never do. Nothing is
known of any header's tags today: they are skipped.
"""

from __future__ import annotations

from functools import cache, lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any

from millstream.protocol.apis import api
from millstream.protocol.codec import decode, encoder, piecewise_encoder
from millstream.protocol.declare import declaration
from millstream.protocol.decoding import skip_tags as skip_counted_tags
from millstream.protocol.errors import MalformedMessage

if TYPE_CHECKING:
    from millstream.protocol.varint import Buffer

_REQUEST_START = Struct(">hhih")
_FRAMED_REQUEST_START = Struct(">ihhih")
_FRAMED_RESPONSE_START = Struct(">ii")
_INT32 = Struct(">i")
_CORRELATION_ID_AT = 8


def decode_request_header(frame: Buffer) -> tuple[int, int, int, str | None, int]:
    """Read (API key, version, correlation id, client id, position of the body) of a frame without its length."""
    if len(frame) < 10:
        raise MalformedMessage(f"a frame of {len(frame)} bytes is too short for a request")
    api_key, version, correlation_id, client_id_bytes = _REQUEST_START.unpack_from(frame)
    position = 10
    client_id = None
    if client_id_bytes >= 0:
        position = 10 + client_id_bytes
        if position > len(frame):
            raise MalformedMessage("the client id is longer than its frame")
        try:
            client_id = str(frame[10:position], "utf-8")
        except UnicodeDecodeError as problem:
            raise MalformedMessage("the client id is not UTF-8") from problem
    elif client_id_bytes != -1:
        raise MalformedMessage(f"a client id of {client_id_bytes} bytes")
    if version in api(api_key).flexible:
        position = skip_tags(frame, position)
    return api_key, version, correlation_id, client_id, position


def skip_tags(frame: Buffer, position: int) -> int:
    """Step over a section of tagged fields; the answer is the position after it."""
    try:
        count = frame[position]
        return skip_counted_tags(frame, position + 1, count) if count else position + 1
    except IndexError as problem:
        raise MalformedMessage("a header ends too early") from problem


def encode_request(message: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A whole frame: length, header, request."""
    kind: type = type(message)
    out = bytearray(_request_head(kind, version, client_id))
    encoder(kind, version)(message, out)
    _INT32.pack_into(out, 0, len(out) - 4)
    _INT32.pack_into(out, _CORRELATION_ID_AT, correlation_id)
    return bytes(out)


def encode_request_pieces(message: Any, version: int, correlation_id: int, client_id: str | None) -> list[Buffer]:
    """The same frame as pieces to be written in turn, the record batches among them not copied."""
    kind: type = type(message)
    out = bytearray(_request_head(kind, version, client_id))
    pieces = piecewise_encoder(kind, version)(message, out)
    _INT32.pack_into(out, 0, sum(map(len, pieces)) - 4)
    _INT32.pack_into(out, _CORRELATION_ID_AT, correlation_id)
    return pieces


@lru_cache(maxsize=1024)
def _request_head(kind: type, version: int, client_id: str | None) -> bytes:
    """Length and header of all requests of a kind and a client; their size and correlation id are still to come."""
    declared = declaration(kind)
    name = b"" if client_id is None else client_id.encode()
    if len(name) > 32767:
        raise ValueError(f"the client id takes {len(name)} bytes, more than the 32767 of a string")
    start = _FRAMED_REQUEST_START.pack(0, declared.api_key, version, 0, -1 if client_id is None else len(name))
    return start + name + (b"\0" if version in declared.flexible else b"")


def encode_response(api_key: int, version: int, correlation_id: int, message: Any) -> bytes:
    """A whole frame: length, header, response."""
    out = _response_start(api_key, version)
    encoder(type(message), version)(message, out)
    _FRAMED_RESPONSE_START.pack_into(out, 0, len(out) - 4, correlation_id)
    return bytes(out)


def encode_response_pieces(api_key: int, version: int, correlation_id: int, message: Any) -> list[Buffer]:
    """The same frame as pieces to be written in turn, the record batches among them not copied."""
    out = _response_start(api_key, version)
    pieces = piecewise_encoder(type(message), version)(message, out)
    _FRAMED_RESPONSE_START.pack_into(out, 0, sum(map(len, pieces)) - 4, correlation_id)
    return pieces


def response_header_length(api_key: int, version: int, frame: Buffer) -> int:
    """Where a response's body starts in a frame without its length."""
    return skip_tags(frame, 4) if _response_is_tagged(api_key, version) else 4


@cache
def _response_is_tagged(api_key: int, version: int) -> bool:
    return api(api_key).response_is_tagged(version)


def decode_response(api_key: int, version: int, frame: Buffer) -> tuple[int, Any]:
    """Read (correlation id, response) of a frame without its length."""
    if len(frame) < 4:
        raise MalformedMessage(f"a frame of {len(frame)} bytes is too short for a response")
    (correlation_id,) = _INT32.unpack_from(frame)
    position = response_header_length(api_key, version, frame)
    return correlation_id, decode(api(api_key).response, version, frame, position)


def _response_start(api_key: int, version: int) -> bytearray:
    return bytearray(9 if _response_is_tagged(api_key, version) else 8)
