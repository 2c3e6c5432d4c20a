"""Data types of values: a small part of Spark SQL's, by Spark's names, so that a schema means the same on both sides.

A type is frozen data. A value of a STRUCT is a dict, or an instance of the dataclass that the schema came from; a
TIMESTAMP is milliseconds since 1970 as an int, as in a Kafka record. ANY stands for what nobody declared: the driver
takes such values as they come, and Spark will ask for a schema.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass
from typing import Any, Union

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class DataType:
    """A type without parts."""

    name: str

    def __str__(self) -> str:
        return self.name


ANY = DataType("any")
NULL = DataType("void")
BOOLEAN = DataType("boolean")
INT = DataType("int")
LONG = DataType("bigint")
DOUBLE = DataType("double")
STRING = DataType("string")
BINARY = DataType("binary")
TIMESTAMP = DataType("timestamp")


@dataclass(frozen=True)
class Array(DataType):
    """A list of one type."""

    element: DataType

    def __init__(self, element: DataType) -> None:
        object.__setattr__(self, "name", f"array<{element}>")
        object.__setattr__(self, "element", element)

    __str__ = DataType.__str__


@dataclass(frozen=True)
class Map(DataType):
    """A dict of one type of key to one type of value."""

    key: DataType
    value: DataType

    def __init__(self, key: DataType, value: DataType) -> None:
        object.__setattr__(self, "name", f"map<{key},{value}>")
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "value", value)

    __str__ = DataType.__str__


@dataclass(frozen=True)
class Struct(DataType):
    """Named fields. `of` is the dataclass whose instances are the values, if there is one."""

    fields: tuple[tuple[str, DataType], ...]
    of: type | None = None

    def __init__(self, fields: dict[str, DataType], of: type | None = None) -> None:
        object.__setattr__(self, "name", "struct<" + ",".join(f"{name}:{kind}" for name, kind in fields.items()) + ">")
        object.__setattr__(self, "fields", tuple(fields.items()))
        object.__setattr__(self, "of", of)

    __str__ = DataType.__str__

    def field(self, name: str) -> DataType | None:
        return dict(self.fields).get(name)


NUMERIC = (INT, LONG, DOUBLE)
_PLAIN = {
    bool: BOOLEAN,
    int: LONG,
    float: DOUBLE,
    str: STRING,
    bytes: BINARY,
    type(None): NULL,
    Any: ANY,
    object: ANY,
    dict: ANY,
    list: Array(ANY),
}


def type_of(annotation: Any) -> DataType:
    """The data type of a Python annotation: `int` is a bigint, a dataclass a struct, `X | None` the same as X.

    Everything may be null, as in Spark's schemas by default.
    """
    if isinstance(annotation, DataType):
        return annotation
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        hints = typing.get_type_hints(annotation)
        fields = {field.name: type_of(hints[field.name]) for field in dataclasses.fields(annotation)}
        return Struct(fields, of=annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType):
        kinds = [argument for argument in arguments if argument is not type(None)]
        if len(kinds) == 1:
            return type_of(kinds[0])
        raise TypeError(f"{annotation} may be several types: a column has one")
    if origin is typing.Annotated:
        return next((extra for extra in arguments[1:] if isinstance(extra, DataType)), type_of(arguments[0]))
    if origin in (list, tuple):
        return Array(type_of(arguments[0]))
    if origin is dict:
        return Map(type_of(arguments[0]), type_of(arguments[1]))
    try:
        return _PLAIN[annotation]
    except (KeyError, TypeError):
        raise TypeError(f"{annotation!r} has no data type: use one of millstream.streams.types") from None


def wider(left: DataType, right: DataType) -> DataType:
    """The type that two values are brought to before they are compared, added or chosen between."""
    if left == right or right in (NULL, ANY):
        return left
    if left in (NULL, ANY):
        return right
    if left in NUMERIC and right in NUMERIC:
        return NUMERIC[max(NUMERIC.index(left), NUMERIC.index(right))]
    if left == TIMESTAMP and right in NUMERIC:
        return wider(LONG, right)
    if right == TIMESTAMP and left in NUMERIC:
        return wider(left, LONG)
    raise TypeError(f"{left} and {right} do not go together: cast one of them")
