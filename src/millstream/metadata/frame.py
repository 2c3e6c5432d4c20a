"""The frame around each record of the metadata log: frame version 1, record type and version, then the message.

All three numbers are unsigned varints; each is below 128 today, but a reader takes what the format allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from millstream.metadata.record_types import KIND_BY_TYPE
from millstream.protocol import codec
from millstream.protocol.declare import declaration
from millstream.protocol.errors import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from millstream.metadata.record_types import MetadataRecord

    Decoder = Callable[[bytes | bytearray | memoryview, int], tuple[Any, int]]

FRAME_VERSION = 1
_decoders: dict[bytes, Decoder] = {}


def encode_record(record: MetadataRecord, version: int) -> bytes:
    record_type = declaration(type(record)).record_type
    assert record_type is not None
    assert record_type < 0x80 > version
    return bytes((FRAME_VERSION, record_type, version)) + codec.encode(record, version)


def decode_record(value: bytes | memoryview) -> MetadataRecord:
    """Decode one record's value. An unknown frame, type or version raises MalformedMessage: someone newer wrote it."""
    # All three numbers fit into a byte each, in every frame written so far: one look-up finds the decoder.
    decoder, position = _decoders.get(bytes(value[:3])), 3
    if decoder is None:
        decoder, position = _find_decoder(value)
    record, end = decoder(value, position)
    if end != len(value):
        raise MalformedMessage(f"{type(record).__name__} is followed by {len(value) - end} bytes too many")
    return cast("MetadataRecord", record)


def _find_decoder(value: bytes | memoryview) -> tuple[Decoder, int]:
    frame_version, position = _unsigned_varint(value, 0)
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(f"metadata record in a frame of version {frame_version}")
    record_type, position = _unsigned_varint(value, position)
    version, position = _unsigned_varint(value, position)
    kind = KIND_BY_TYPE.get(record_type)
    if kind is None:
        raise MalformedMessage(f"metadata record of unknown type {record_type}")
    if version not in declaration(kind).versions:
        raise MalformedMessage(f"{kind.__name__} in the unknown version {version}")
    decoder = codec.decoder(kind, version)
    if position == 3:
        _decoders[bytes(value[:3])] = decoder
    return decoder, position


def _unsigned_varint(value: bytes | memoryview, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if position >= len(value):
            raise MalformedMessage("metadata record ends inside its frame")
        byte = value[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise MalformedMessage("metadata record with a frame number of more than 32 bits")
