"""What a declaration looks like in one version: the compilers' view of it.

Annotations stay strings until a message is first encoded or decoded; this module resolves them. `layout(kind, version)`
answers with the fields that are on the wire in that version, in order, the tagged ones apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from millstream.protocol.declare import ALL_VERSIONS, NO_DEFAULT, Kind, Message, Versions, Wire, declaration


@dataclass(frozen=True, slots=True)
class Array:
    """A list of one type."""

    element: Type


@dataclass(frozen=True, slots=True)
class Structure:
    """A nested declared class."""

    kind: type[Message]


Type = Kind | Array | Structure


@dataclass(frozen=True, slots=True)
class Field:
    """One declared field with its annotation resolved."""

    name: str
    type: Type
    wire: Wire
    nullable: Versions | None


@dataclass(frozen=True, slots=True)
class Placed:
    """A field as one version has it. `compact` says whether its lengths are varints."""

    name: str
    type: Type
    nullable: bool
    compact: bool
    tag: int
    default: Any


@dataclass(frozen=True, slots=True)
class Layout:
    """One version of a message or structure."""

    kind: type[Message]
    plain: tuple[Placed, ...]
    tagged: tuple[Placed, ...]
    flexible: bool
    version: int

    def of(self, kind: type[Message]) -> Layout:
        """The same version of a structure nested in this one."""
        return place(kind, self.version, flexible=self.flexible)


# A struct format character for everything that has one size.
FIXED = {
    Kind.BOOL: "?",
    Kind.INT8: "b",
    Kind.INT16: "h",
    Kind.UINT16: "H",
    Kind.INT32: "i",
    Kind.UINT32: "I",
    Kind.INT64: "q",
    Kind.FLOAT64: "d",
    Kind.UUID: "16s",
}
FIXED_SIZE = {"?": 1, "b": 1, "B": 1, "x": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}
STRING_BYTES_MAX = 32767


@cache
def fields(kind: type[Message]) -> tuple[Field, ...]:
    """Every declared field of a class, whatever the version."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_field(name, hints[name], spec) for name, spec in declaration(kind).fields.items())


def layout(kind: type[Message], version: int) -> Layout:
    """A message (not a nested structure) in one of its versions."""
    return place(kind, version, flexible=version in declaration(kind).flexible)


@cache
def place(kind: type[Message], version: int, *, flexible: bool) -> Layout:
    plain: list[Placed] = []
    tagged: list[Placed] = []
    for field in fields(kind):
        spec = field.wire
        is_tagged = spec.tag is not None and version in spec.tagged
        if version not in spec.versions:
            assert spec.default is not NO_DEFAULT, (
                f"{kind.__name__}.{field.name} is not in v{version} and has no default"
            )
            continue
        placed = Placed(
            name=field.name,
            type=field.type,
            nullable=field.nullable is not None and version in field.nullable,
            compact=flexible and version in spec.flexible,
            tag=-1 if spec.tag is None else spec.tag,
            default=spec.default,
        )
        if is_tagged:
            assert flexible, f"{kind.__name__}.{field.name} is tagged in v{version}, which is not flexible"
            assert spec.default is not NO_DEFAULT, f"{kind.__name__}.{field.name} is tagged and has no default"
            tagged.append(placed)
        else:
            plain.append(placed)
    tagged.sort(key=lambda placed: placed.tag)
    return Layout(kind, tuple(plain), tuple(tagged), flexible, version)


def smallest_size(kind: Type, around: Layout, *, compact: bool, nullable: bool = False) -> int:
    """The fewest bytes that a value of this type takes, which bounds how many of them a buffer can hold."""
    match kind:
        case Structure(nested):
            if nullable:
                return 1
            inner = around.of(nested)
            size = sum(smallest_size(f.type, inner, compact=f.compact, nullable=f.nullable) for f in inner.plain)
            return size + inner.flexible
        case Array():
            return 1 if compact else 4
        case Kind.STRING:
            return 1 if compact else 2
        case Kind.BYTES | Kind.RECORDS:
            return 1 if compact else 4
        case _:
            return FIXED_SIZE[FIXED[kind]]


def _field(name: str, hint: Any, spec: Wire) -> Field:
    nullable: Versions | None = None
    if get_origin(hint) in (Union, UnionType):
        options = [option for option in get_args(hint) if option is not NoneType]
        assert len(options) == 1, f"{name}: {hint} is not a type of the wire"
        hint = options[0]
        nullable = ALL_VERSIONS if spec.nullable is None else spec.nullable
    return Field(name, _type(hint), spec, nullable)


def _type(hint: Any) -> Type:
    if get_origin(hint) is Annotated:
        kind: Kind = hint.__metadata__[0]
        return kind
    if get_origin(hint) is list:
        return Array(_type(get_args(hint)[0]))
    assert isinstance(hint, type), f"{hint} is not a type of the wire"
    assert issubclass(hint, Message), f"{hint} is not declared"
    return Structure(hint)
