"""Fills any declared message with values that Capture.java computes too, so that the bytes can be compared.

A counter goes up with every leaf. Plain fields come in their order, tagged ones after them by tag, elements of an array
one after the other; a leaf's value follows from the counter alone. The variants:

full     everything present, arrays of two
null     null wherever the version allows it, all other arrays empty
default  as a message is before anything is set
long     lengths and counts that need two or three bytes; newest versions only
framed   full, in the frame that the message has in Kafka's own logs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from millstream.protocol.declare import NO_DEFAULT, Kind, Message
from millstream.protocol.shape import Array, Layout, Placed, Structure, Type, fields, layout
from millstream.protocol.uuid import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Variant = Literal["full", "null", "default", "long"]


def build(kind: type[Message], version: int, variant: Variant) -> Any:
    if variant == "default":
        return default_of(kind)
    return _Filling(variant).structure(layout(kind, version))


def default_of(kind: Any) -> Any:
    """What `new Message()` is in Java: required fields have the zero of their type."""
    zeros = {field.name: zero_of(field.type) for field in fields(kind) if field.wire.default is NO_DEFAULT}
    return kind(**zeros)


def zero_of(kind: Type) -> Any:
    match kind:
        case Array():
            return []
        case Structure(nested):
            return default_of(nested)
        case Kind.BOOL:
            return False
        case Kind.STRING:
            return ""
        case Kind.BYTES:
            return b""
        case Kind.RECORDS:
            return None
        case Kind.UUID:
            return ZERO_UUID
        case _:
            return 0


class _Filling:
    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.counter = 0

    def structure(self, where: Layout) -> Message:
        values = dict(self.fields(where))
        required = {field.name: zero_of(field.type) for field in fields(where.kind) if field.wire.default is NO_DEFAULT}
        return where.kind(**{**required, **values})

    def fields(self, where: Layout) -> Iterator[tuple[str, Any]]:
        for placed in (*where.plain, *where.tagged):
            yield placed.name, self.field(placed, where)

    def field(self, placed: Placed, where: Layout) -> Any:
        if placed.nullable and self.variant == "null":
            return None
        return self.value(placed.type, where)

    def value(self, kind: Type, where: Layout) -> Any:
        match kind:
            case Array(element):
                long = 1 if isinstance(element, Structure) else 40
                count = {"full": 2, "null": 0, "long": long}[self.variant]
                return [self.value(element, where) for _ in range(count)]
            case Structure(nested):
                return self.structure(where.of(nested))
            case Kind():
                return self.leaf(kind)

    def leaf(self, kind: Kind) -> Any:
        self.counter += 1
        return LEAVES[kind](self.counter, self.variant == "long")


def run(n: int, length: int) -> bytes:
    return bytes((n + i) % 256 for i in range(length))


def text(n: int, *, is_long: bool) -> str:
    return f"s{n}" + "ü€𝄞" * (n % 3 == 0) + "x" * (140 if is_long and n % 4 == 1 else 0)


LEAVES: dict[Kind, Callable[[int, bool], Any]] = {
    Kind.BOOL: lambda n, _: n % 2 == 1,
    Kind.INT8: lambda n, _: n % 128,
    Kind.INT16: lambda n, _: n * 257 % 32768,
    Kind.UINT16: lambda n, _: n * 4099 % 65536,
    Kind.INT32: lambda n, _: n * 16777619 % 2**31,
    Kind.UINT32: lambda n, _: n * 3000000019 % 2**32,
    Kind.INT64: lambda n, _: n * 72057594037927,
    Kind.FLOAT64: lambda n, _: n + 0.5,
    Kind.STRING: lambda n, is_long: text(n, is_long=is_long),
    Kind.UUID: lambda n, _: Uuid(run(n, 16)),
    Kind.BYTES: lambda n, is_long: run(n, 150 if is_long else 3),
    Kind.RECORDS: lambda n, is_long: run(n, 17000 if is_long else 20),
}
