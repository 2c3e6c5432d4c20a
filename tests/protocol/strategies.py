"""Hypothesis strategies made from declarations, and what one version keeps of a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from millstream.protocol.declare import NO_DEFAULT, Kind, Message
from millstream.protocol.shape import Array, Layout, Structure, Type, fields
from millstream.protocol.uuid import Uuid

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

LEAVES: dict[Kind, SearchStrategy[Any]] = {
    Kind.BOOL: st.booleans(),
    Kind.INT8: st.integers(-(2**7), 2**7 - 1),
    Kind.INT16: st.integers(-(2**15), 2**15 - 1),
    Kind.UINT16: st.integers(0, 2**16 - 1),
    Kind.INT32: st.integers(-(2**31), 2**31 - 1),
    Kind.UINT32: st.integers(0, 2**32 - 1),
    Kind.INT64: st.integers(-(2**63), 2**63 - 1),
    Kind.FLOAT64: st.floats(allow_nan=False),
    Kind.STRING: st.text(max_size=20) | st.text(st.characters(codec="utf-8"), min_size=1, max_size=3).map("long ".join),
    Kind.BYTES: st.binary(max_size=30),
    Kind.RECORDS: st.binary(max_size=200),
    Kind.UUID: st.binary(min_size=16, max_size=16).map(Uuid),
}


def messages(kind: type[Message]) -> SearchStrategy[Any]:
    """Messages with every field of every version filled in, nulls wherever some version allows them."""
    return st.builds(
        kind,
        **{
            field.name: values(field.type) if field.nullable is None else st.none() | values(field.type)
            for field in fields(kind)
        },
    )


def values(kind: Type) -> SearchStrategy[Any]:
    match kind:
        case Array(element):
            return st.lists(values(element), max_size=3)
        case Structure(nested):
            return messages(nested)
        case Kind():
            return LEAVES[kind]


def kept(message: Any, where: Layout) -> Any:
    """The message as it comes back from a version: what that version lacks has its default."""
    placed = {field.name: field for field in (*where.plain, *where.tagged)}
    values_kept: dict[str, Any] = {}
    for field in fields(where.kind):
        spot = placed.get(field.name)
        if spot is None:
            assert field.wire.default is not NO_DEFAULT
            continue
        value = getattr(message, field.name)
        if value is None and not spot.nullable:
            value = _something(field.type, where)
        values_kept[field.name] = _kept_value(value, field.type, where)
    return where.kind(**values_kept)


def _kept_value(value: Any, kind: Type, where: Layout) -> Any:
    match kind:
        case Array(element) if value is not None:
            return [_kept_value(each, element, where) for each in value]
        case Structure(nested) if value is not None:
            return kept(value, where.of(nested))
        case _:
            return value


def _something(kind: Type, where: Layout) -> Any:
    assert not isinstance(kind, Structure), "no structure is nullable in some versions only"
    return [] if isinstance(kind, Array) else "" if kind is Kind.STRING else b""
