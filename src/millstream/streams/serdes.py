"""Serdes: how keys and values become bytes, in Kafka's own forms.

A serde has `serialize`, `deserialize` and the data type of its values; whatever has those three is one (the protocol
below). Null is never passed to a serde: it is null on both sides. Where a serde is expected, a Python type will do:
`str`, `bytes`, `int` (8 bytes, Java's long), `float`, `bool`, a dataclass or `dict` (both JSON).
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any, Protocol, TypedDict, runtime_checkable

import msgspec

from millstream.streams.types import ANY, BINARY, BOOLEAN, DOUBLE, INT, LONG, STRING, DataType, Struct, type_of
from millstream.streams.windows import Window, Windowed

# The bits that Java writes for every NaN.
_NAN = b"\x7f\xf8" + bytes(6)


class SerdeError(ValueError):
    """Bytes that are no value of the serde, or a value that it cannot write."""


@runtime_checkable
class Serde(Protocol):
    """Values to bytes and back."""

    @property
    def type(self) -> DataType: ...

    def serialize(self, value: Any) -> bytes: ...

    def deserialize(self, data: bytes) -> Any: ...


@dataclasses.dataclass(frozen=True)
class StringSerde:
    """Text as UTF-8. Bytes that are none become U+FFFD, and half a surrogate pair becomes "?", as Kafka's do."""

    type: DataType = STRING

    def serialize(self, value: Any) -> bytes:
        try:
            encoded: bytes = value.encode(errors="replace")
        except AttributeError:
            raise SerdeError(f"{value!r} is no text: say which serde it has") from None
        return encoded

    def deserialize(self, data: bytes) -> str:
        return data.decode(errors="replace")

    def __str__(self) -> str:
        return "string"


@dataclasses.dataclass(frozen=True)
class BytesSerde:
    """Bytes as they are."""

    type: DataType = BINARY

    def serialize(self, value: Any) -> bytes:
        if not isinstance(value, bytes):
            raise SerdeError(f"{value!r} is not bytes: say which serde it has")
        return value

    def deserialize(self, data: bytes) -> bytes:
        return data

    def __str__(self) -> str:
        return "bytes"


@dataclasses.dataclass(frozen=True)
class NumberSerde:
    """A number in Java's form: big-endian, of a fixed size; there is one NaN."""

    name: str
    format: str
    type: DataType

    def serialize(self, value: Any) -> bytes:
        try:
            is_nan = self.format == ">d" and value != value  # noqa: PLR0124  # only NaN is that
            return _NAN if is_nan else struct.pack(self.format, value)
        except struct.error:
            raise SerdeError(f"{value!r} is no {self.name}: say which serde it has") from None

    def deserialize(self, data: bytes) -> Any:
        try:
            return struct.unpack(self.format, data)[0]
        except struct.error:
            raise SerdeError(f"{len(data)} bytes are no {self.name}") from None

    def __str__(self) -> str:
        return self.name


class JsonSerde:
    """JSON. With a dataclass its instances come back; with a Struct a dict is checked; otherwise anything goes."""

    def __init__(self, schema: Any = ANY) -> None:
        self.type = type_of(schema) if not isinstance(schema, DataType) else schema
        shape = _shape(self.type)
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(shape).decode

    def serialize(self, value: Any) -> bytes:
        try:
            return self._encode(value)
        except TypeError as wrong:
            raise SerdeError(f"{value!r} is not JSON: {wrong}") from None

    def deserialize(self, data: bytes) -> Any:
        try:
            return self._decode(data)
        except msgspec.DecodeError as wrong:
            raise SerdeError(f"{data[:100]!r}: {wrong}") from None

    def __reduce__(self) -> tuple[type, tuple[DataType]]:
        # What msgspec compiled is made again elsewhere, such as in Spark's workers.
        return JsonSerde, (self.type,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonSerde) and other.type == self.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"JsonSerde({self.type})"

    def __str__(self) -> str:
        return "json" if self.type == ANY else f"json {self.type}"


def _shape(kind: DataType) -> Any:
    """What msgspec is to check: a TypedDict of the fields, all of which may be missing or null."""
    if isinstance(kind, Struct):
        if kind.of is not None:
            return kind.of
        fields = {name: _shape(each) | None if each != ANY else Any for name, each in kind.fields}
        return TypedDict("Row", fields, total=False)  # type: ignore[operator]
    return {STRING: str, LONG: int, INT: int, DOUBLE: float, BOOLEAN: bool, BINARY: bytes}.get(kind, Any)


@dataclasses.dataclass(frozen=True)
class TimeWindowedSerde:
    """A key in a window of fixed size, as Kafka Streams writes it: the key, then the start in 8 bytes."""

    inner: Serde
    size_ms: int

    @property
    def type(self) -> DataType:
        return self.inner.type

    def serialize(self, value: Any) -> bytes:
        return self.inner.serialize(value.key) + struct.pack(">q", value.window.start_ms)

    def deserialize(self, data: bytes) -> Windowed:
        (start_ms,) = struct.unpack(">q", data[-8:])
        return Windowed(self.inner.deserialize(data[:-8]), Window(start_ms, start_ms + self.size_ms))

    def __str__(self) -> str:
        return f"windowed {self.inner}"


@dataclasses.dataclass(frozen=True)
class SessionWindowedSerde:
    """A key in a session, as Kafka Streams writes it: the key, the end and the start."""

    inner: Serde

    @property
    def type(self) -> DataType:
        return self.inner.type

    def serialize(self, value: Any) -> bytes:
        return self.inner.serialize(value.key) + struct.pack(">qq", value.window.end_ms, value.window.start_ms)

    def deserialize(self, data: bytes) -> Windowed:
        end_ms, start_ms = struct.unpack(">qq", data[-16:])
        return Windowed(self.inner.deserialize(data[:-16]), Window(start_ms, end_ms))

    def __str__(self) -> str:
        return f"session {self.inner}"


STRING_SERDE = StringSerde()
BYTES_SERDE = BytesSerde()
INT_SERDE = NumberSerde("int", ">i", INT)
LONG_SERDE = NumberSerde("long", ">q", LONG)
DOUBLE_SERDE = NumberSerde("double", ">d", DOUBLE)
JSON_SERDE = JsonSerde()

_BY_PYTHON_TYPE: dict[object, Serde] = {
    str: STRING_SERDE,
    bytes: BYTES_SERDE,
    int: LONG_SERDE,
    float: DOUBLE_SERDE,
    dict: JSON_SERDE,
    list: JSON_SERDE,
    bool: JsonSerde(BOOLEAN),
}
_BY_TYPE: dict[DataType, Serde] = {
    STRING: STRING_SERDE,
    BINARY: BYTES_SERDE,
    INT: INT_SERDE,
    LONG: LONG_SERDE,
    DOUBLE: DOUBLE_SERDE,
    ANY: JSON_SERDE,
}


def json(schema: Any = ANY) -> JsonSerde:
    """JSON, from a dataclass, a Struct, or without a schema."""
    return JsonSerde(schema)


def serde_of(described: Any) -> Serde:
    """The serde that is meant by a serde, a Python type, a dataclass or a data type."""
    if isinstance(described, DataType):
        return _BY_TYPE.get(described) or JsonSerde(described)
    if isinstance(described, type):
        if dataclasses.is_dataclass(described):
            return JsonSerde(described)
        if described in _BY_PYTHON_TYPE:
            return _BY_PYTHON_TYPE[described]
    elif isinstance(described, Serde):
        return described
    try:
        return serde_of(type_of(described))  # such as list[str], dict[str, int] and str | None
    except TypeError:
        pass
    raise TypeError(f"{described!r} says nothing of a serde: give a serde, a type such as str, or a dataclass")
