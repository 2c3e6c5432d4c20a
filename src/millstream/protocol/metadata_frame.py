"""The value of a record in the metadata log: frame version, record type and version as varints, then the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.protocol.apis import metadata_record_class
from millstream.protocol.codec import decode, encoder
from millstream.protocol.declare import declaration
from millstream.protocol.errors import MalformedMessage, UnknownRecordType
from millstream.protocol.varint import decode_uvarint, encode_uvarint

if TYPE_CHECKING:
    from millstream.protocol.varint import Buffer

FRAME_VERSION = 1


def encode_metadata_record(record: object, version: int) -> bytes:
    record_type = declaration(type(record)).record_type
    assert record_type is not None, f"{type(record).__name__} is not a metadata record"
    out = bytearray((FRAME_VERSION,))
    out += encode_uvarint(record_type) + encode_uvarint(version)
    encoder(type(record), version)(record, out)
    return bytes(out)


def decode_metadata_record(value: Buffer) -> tuple[Any, int]:
    """Read (record, its version). UnknownRecordType says that a newer release wrote it."""
    try:
        frame_version, position = decode_uvarint(value, 0)
        record_type, position = decode_uvarint(value, position)
        version, position = decode_uvarint(value, position)
    except IndexError as problem:
        raise MalformedMessage("a metadata record ends inside its frame") from problem
    if frame_version != FRAME_VERSION:
        raise UnknownRecordType(f"metadata frame version {frame_version} is not known")
    kind = metadata_record_class(record_type)
    if version not in declaration(kind).versions:
        raise UnknownRecordType(f"version {version} of {kind.__name__} is not known")
    return decode(kind, version, value, position), version
