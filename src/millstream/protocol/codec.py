"""Messages to bytes and back, through functions compiled per (message, version) on first use.

`encode` and `decode` are the plain way. Hot paths keep the function that `encoder` or `decoder` returns; where large
record batches are inside, `piecewise_encoder` keeps them from being copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from millstream.protocol.declare import declaration
from millstream.protocol.decoding import compile_decoder
from millstream.protocol.encoding import compile_encoder, compile_piecewise_encoder
from millstream.protocol.errors import MalformedMessage, UnsupportedVersion

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.protocol.declare import Message
    from millstream.protocol.varint import Buffer

T = TypeVar("T")

_encoders: dict[tuple[type, int], Callable[[Any, bytearray], None]] = {}
_piecewise_encoders: dict[tuple[type, int], Callable[[Any, bytearray], list[Buffer]]] = {}
_decoders: dict[tuple[type, int], Callable[[Buffer, int], tuple[Any, int]]] = {}


def encode(message: Any, version: int) -> bytes:
    """The bytes of a message. Fields that the version lacks are left out; ValueError if a value does not fit."""
    out = bytearray()
    encoder(type(message), version)(message, out)
    return bytes(out)


def decode(kind: type[T], version: int, buffer: Buffer, position: int = 0) -> T:
    """Read the message that fills the buffer from `position` to its end; MalformedMessage if it does not."""
    message, end = decoder(kind, version)(buffer, position)
    if end != len(buffer):
        raise MalformedMessage(f"{kind.__name__} v{version} is followed by {len(buffer) - end} bytes too many")
    return message


def decode_prefix(kind: type[T], version: int, buffer: Buffer, position: int = 0) -> tuple[T, int]:
    """Read a message that more may follow: (message, position after it)."""
    return decoder(kind, version)(buffer, position)


def encoder(kind: type[T], version: int) -> Callable[[T, bytearray], None]:
    """The compiled `encode(message, out)`, which adds to a bytearray."""
    found = _encoders.get((kind, version))
    if found is None:
        found = compile_encoder(_known(kind, version), version)
        _encoders[kind, version] = found
    return found


def piecewise_encoder(kind: type[T], version: int) -> Callable[[T, bytearray], list[Buffer]]:
    """The compiled `encode(message, out) -> pieces`, for messages with record batches that are better not copied.

    The pieces are to be written in turn: `out` itself first, then by turns a batch as it was given and a bytearray.
    """
    found = _piecewise_encoders.get((kind, version))
    if found is None:
        found = compile_piecewise_encoder(_known(kind, version), version)
        _piecewise_encoders[kind, version] = found
    return found


def decoder(kind: type[T], version: int) -> Callable[[Buffer, int], tuple[T, int]]:
    """The compiled `decode(buffer, position) -> (message, position after it)`."""
    found = _decoders.get((kind, version))
    if found is None:
        found = compile_decoder(_known(kind, version), version)
        _decoders[kind, version] = found
    return found


def _known(kind: type[Any], version: int) -> type[Message]:
    versions = declaration(kind).versions
    if version not in versions:
        raise UnsupportedVersion(f"{kind.__name__} has versions {versions.first} to {versions.last}, not {version}")
    return kind
