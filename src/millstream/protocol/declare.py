"""How a message is declared: one class for all versions, versions as annotations on its fields.

    @message(key=11, versions="0-9", flexible="6+")
    class JoinGroupRequest:
        group_id: String
        rebalance_timeout_ms: Int32 = wire("1+", default=-1)

A declared class is a msgspec Struct: keyword-only, compared by value, built in C, and left out of garbage
collection (messages are trees). `codec.py` compiles an encoder and a decoder for each version on first use,
so importing a declaration costs next to nothing: annotations stay strings until then.

A field without `wire` is on the wire in every version and must be given to the constructor. A field that some
version lacks has a default, which is also what a decoder fills in for the versions that lack it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from functools import partial
from inspect import get_annotations
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, dataclass_transform

import msgspec

from millstream.protocol.uuid import Uuid

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Kind(Enum):
    """The primitive types of Kafka's message definitions."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    FLOAT64 = "float64"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"
    UUID = "uuid"


Bool = Annotated[bool, Kind.BOOL]
Int8 = Annotated[int, Kind.INT8]
Int16 = Annotated[int, Kind.INT16]
UInt16 = Annotated[int, Kind.UINT16]
Int32 = Annotated[int, Kind.INT32]
UInt32 = Annotated[int, Kind.UINT32]
Int64 = Annotated[int, Kind.INT64]
Float64 = Annotated[float, Kind.FLOAT64]
String = Annotated[str, Kind.STRING]
# Decoded bytes are copies; decoded records are views into the frame, which must not outlive the request.
Bytes = Annotated[bytes, Kind.BYTES]
Records = Annotated[bytes | bytearray | memoryview, Kind.RECORDS]
UuidField = Annotated[Uuid, Kind.UUID]

NO_DEFAULT: Any = object()


class Versions(NamedTuple):
    """An inclusive range of versions; `last` is 32767 for "and all later ones"."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        if text == "none":
            return NO_VERSIONS
        first, dash, last = text.partition("-")
        if dash:
            return cls(int(first), int(last))
        if first.endswith("+"):
            return cls(int(first[:-1]), OPEN_END)
        return cls(int(first), int(first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


OPEN_END = 32767
NO_VERSIONS = Versions(0, -1)
ALL_VERSIONS = Versions(0, OPEN_END)


@dataclass(frozen=True, slots=True)
class Wire:
    """What a field's declaration says beyond its type."""

    versions: Versions = ALL_VERSIONS
    default: Any = NO_DEFAULT
    tag: int | None = None
    tagged: Versions = NO_VERSIONS
    nullable: Versions | None = None
    flexible: Versions = ALL_VERSIONS


def wire(
    versions: str = "0+",
    *,
    default: Any = NO_DEFAULT,
    tag: int | None = None,
    tagged: str | None = None,
    nullable: str | None = None,
    flexible: str = "0+",
) -> Any:
    """Say in which versions a field is on the wire, its default, its tag, and from when it may be null.

    `tag` makes it a tagged field, in all its versions unless `tagged` narrows them. A field annotated `| None`
    may be null in all its versions unless `nullable` narrows them. `flexible` keeps one field at the old encoding in
    flexible versions: only the request header's client id needs that.
    """
    tagged_versions = NO_VERSIONS if tag is None else Versions.parse(tagged or versions)
    return Wire(
        versions=Versions.parse(versions),
        default=default,
        tag=tag,
        tagged=tagged_versions,
        nullable=None if nullable is None else Versions.parse(nullable),
        flexible=Versions.parse(flexible),
    )


PLAIN = Wire()


@dataclass(frozen=True, slots=True)
class Declaration:
    """All that was declared of one message or nested structure."""

    name: str
    fields: dict[str, Wire]
    versions: Versions = ALL_VERSIONS
    flexible: Versions = NO_VERSIONS
    api_key: int | None = None
    record_type: int | None = None
    coordinator_type: int | None = None
    unstable: Versions = NO_VERSIONS
    listeners: tuple[Listener, ...] = ()


Listener = Literal["broker", "controller"]


class Message(msgspec.Struct, kw_only=True, gc=False):
    """The base of every declared class."""


def declaration(kind: type) -> Declaration:
    found: Declaration = kind.__dict__["__declaration__"]
    return found


def _default(value: Any) -> Any:
    # msgspec copies empty lists by itself; a structure as default must not be shared between messages. Its own
    # __copy__ is by far the fastest way, but it is shallow.
    if not isinstance(value, Message):
        return value
    holds_lists = any(isinstance(getattr(value, name), list) for name in value.__struct_fields__)
    structure: Any = value
    return msgspec.field(default_factory=partial(deepcopy, value) if holds_lists else structure.__copy__)


def _build(cls: type[T], **declared: Any) -> type[T]:
    annotations: dict[str, str] = get_annotations(cls)
    fields: dict[str, Wire] = {name: cls.__dict__.get(name, PLAIN) for name in annotations}
    specs: list[Any] = [
        (name, annotations[name]) if spec.default is NO_DEFAULT else (name, annotations[name], _default(spec.default))
        for name, spec in fields.items()
    ]
    namespace = {
        name: value
        for name, value in cls.__dict__.items()
        if name not in fields and name not in ("__dict__", "__weakref__", "__annotations__")
    }
    namespace["__declaration__"] = Declaration(name=cls.__name__, fields=fields, **declared)
    # The decorators keep the declared type for their users.
    return msgspec.defstruct(  # type: ignore[return-value]
        cls.__name__, specs, bases=(Message,), module=cls.__module__, namespace=namespace, kw_only=True, gc=False
    )


@dataclass_transform(kw_only_default=True, field_specifiers=(wire,))
def message(
    *,
    versions: str,
    flexible: str = "none",
    key: int | None = None,
    record_type: int | None = None,
    coordinator_type: int | None = None,
    unstable: str = "none",
    listeners: tuple[Listener, ...] = (),
) -> Callable[[type[T]], type[T]]:
    """Declare a message: a request or response (`key`), a metadata record (`record_type`), a coordinator's key or
    value (`coordinator_type`), or plain data."""
    return lambda cls: _build(
        cls,
        versions=Versions.parse(versions),
        flexible=Versions.parse(flexible),
        api_key=key,
        record_type=record_type,
        coordinator_type=coordinator_type,
        unstable=Versions.parse(unstable),
        listeners=listeners,
    )


@dataclass_transform(kw_only_default=True, field_specifiers=(wire,))
def struct(cls: type[T]) -> type[T]:
    """Declare a structure nested in messages; it is flexible where the message around it is."""
    return _build(cls)
