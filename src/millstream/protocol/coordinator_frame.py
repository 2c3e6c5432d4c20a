"""Keys and values of the coordinators' logs: `__consumer_offsets`, `__transaction_state`, `__share_group_state`.

A key starts with the record type, a value with its own version, both as int16; the messages follow. Each log numbers
its types by itself, so a reader says which log it reads. Keys have one version only.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from millstream.protocol.apis import coordinator_record_classes
from millstream.protocol.codec import decode, encoder
from millstream.protocol.declare import declaration
from millstream.protocol.errors import MalformedMessage, UnknownRecordType

if TYPE_CHECKING:
    from millstream.protocol.apis import CoordinatorLog
    from millstream.protocol.varint import Buffer

_INT16 = Struct(">h")
_KEY_VERSION = 0


def encode_coordinator_key(key: object) -> bytes:
    record_type = declaration(type(key)).coordinator_type
    assert record_type is not None, f"{type(key).__name__} is not a coordinator's record"
    out = bytearray(_INT16.pack(record_type))
    encoder(type(key), _KEY_VERSION)(key, out)
    return bytes(out)


def encode_coordinator_value(value: object, version: int) -> bytes:
    out = bytearray(_INT16.pack(version))
    encoder(type(value), version)(value, out)
    return bytes(out)


def decode_coordinator_key(log: CoordinatorLog, key: Buffer) -> Any:
    """Read a key. UnknownRecordType says that a newer release wrote it; readers pass over such records."""
    kind, _ = coordinator_record_classes(log, _number(key))
    return decode(kind, _KEY_VERSION, key, 2)


def decode_coordinator_value(log: CoordinatorLog, key: object, value: Buffer) -> tuple[Any, int]:
    """Read (value, its version) of the record with this key."""
    record_type = declaration(type(key)).coordinator_type
    assert record_type is not None, f"{type(key).__name__} is not a coordinator's record"
    _, kind = coordinator_record_classes(log, record_type)
    version = _number(value)
    if version not in declaration(kind).versions:
        raise UnknownRecordType(f"version {version} of {kind.__name__} is not known")
    return decode(kind, version, value, 2), version


def _number(data: Buffer) -> int:
    if len(data) < 2:
        raise MalformedMessage(f"a coordinator's record of {len(data)} bytes is too short")
    (number,) = _INT16.unpack_from(data)
    return int(number)
