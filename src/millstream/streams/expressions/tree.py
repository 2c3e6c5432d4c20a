"""The expression tree: what a column is, without how it is computed.

Five kinds of node are enough: a Literal, a Source (a part of the record), a Field of something, a Call of a function
by its name, and a Cast. Operators of Python build Calls. Nodes compare as data with `same_as`, since `==` builds a
comparison; their hash is by content.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.streams.types import DataType


class Expression:
    """A column. Combine it with Python's operators; `&`, `|` and `~` are and, or and not."""

    __slots__ = ()

    def same_as(self, other: object) -> bool:
        """Whether both are the same tree."""
        return same(self, other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __bool__(self) -> bool:
        raise TypeError("a column has no truth value: use & for `and`, | for `or`, ~ for `not`")

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return Call("=", (self, lit(other)))

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return Call("!=", (self, lit(other)))

    def __lt__(self, other: object) -> Expression:
        return Call("<", (self, lit(other)))

    def __le__(self, other: object) -> Expression:
        return Call("<=", (self, lit(other)))

    def __gt__(self, other: object) -> Expression:
        return Call(">", (self, lit(other)))

    def __ge__(self, other: object) -> Expression:
        return Call(">=", (self, lit(other)))

    def __add__(self, other: object) -> Expression:
        return Call("+", (self, lit(other)))

    def __radd__(self, other: object) -> Expression:
        return Call("+", (lit(other), self))

    def __sub__(self, other: object) -> Expression:
        return Call("-", (self, lit(other)))

    def __rsub__(self, other: object) -> Expression:
        return Call("-", (lit(other), self))

    def __mul__(self, other: object) -> Expression:
        return Call("*", (self, lit(other)))

    def __rmul__(self, other: object) -> Expression:
        return Call("*", (lit(other), self))

    def __truediv__(self, other: object) -> Expression:
        return Call("/", (self, lit(other)))

    def __rtruediv__(self, other: object) -> Expression:
        return Call("/", (lit(other), self))

    def __mod__(self, other: object) -> Expression:
        return Call("%", (self, lit(other)))

    def __rmod__(self, other: object) -> Expression:
        return Call("%", (lit(other), self))

    def __neg__(self) -> Expression:
        return Call("negative", (self,))

    def __and__(self, other: object) -> Expression:
        return Call("and", (self, lit(other)))

    def __rand__(self, other: object) -> Expression:
        return Call("and", (lit(other), self))

    def __or__(self, other: object) -> Expression:
        return Call("or", (self, lit(other)))

    def __ror__(self, other: object) -> Expression:
        return Call("or", (lit(other), self))

    def __invert__(self) -> Expression:
        return Call("not", (self,))

    def __getitem__(self, name: str | int) -> Expression:
        """A field of a struct, an item of a map, or an item of an array by its index."""
        return Field(self, name)

    def field(self, name: str) -> Expression:
        return Field(self, name)

    def div(self, other: object) -> Expression:
        """Whole division, towards zero."""
        return Call("div", (self, lit(other)))

    def eq_null_safe(self, other: object) -> Expression:
        """Equal, or both null: never null itself."""
        return Call("<=>", (self, lit(other)))

    def is_null(self) -> Expression:
        return Call("isnull", (self,))

    def is_not_null(self) -> Expression:
        return Call("isnotnull", (self,))

    def is_in(self, values: Sequence[object]) -> Expression:
        return Call("in", (self, *(lit(each) for each in values)))

    def between(self, low: object, high: object) -> Expression:
        """Both ends included."""
        return (self >= low) & (self <= high)

    def like(self, pattern: str) -> Expression:
        """SQL's LIKE: % is any text, _ any one letter, a backslash takes the meaning away."""
        return Call("like", (self, lit(pattern)))

    def rlike(self, pattern: str) -> Expression:
        """Whether the regular expression is found anywhere."""
        return Call("rlike", (self, lit(pattern)))

    def contains(self, text: object) -> Expression:
        return Call("contains", (self, lit(text)))

    def starts_with(self, text: object) -> Expression:
        return Call("startswith", (self, lit(text)))

    def ends_with(self, text: object) -> Expression:
        return Call("endswith", (self, lit(text)))

    def cast(self, kind: DataType) -> Expression:
        return Cast(self, kind)


def same(one: object, other: object) -> bool:
    """Whether two trees, or two dataclasses or tuples with trees in them, hold the same."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one) and not isinstance(one, type):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return one == other


@dataclass(frozen=True, eq=False)
class Literal(Expression):
    """A constant."""

    constant: Any

    def __str__(self) -> str:
        if isinstance(self.constant, str):
            return "'" + self.constant.replace("'", "''") + "'"
        if self.constant is None or isinstance(self.constant, bool):
            return {None: "NULL", True: "true", False: "false"}[self.constant]
        return str(self.constant)


@dataclass(frozen=True, eq=False)
class Source(Expression):
    """A part of the record: key, value, timestamp, left, right, window_start, window_end."""

    part: str

    def __str__(self) -> str:
        return self.part


@dataclass(frozen=True, eq=False)
class Field(Expression):
    """A field of a struct, or an item of a map or an array."""

    of: Expression
    name: str | int

    def __str__(self) -> str:
        if isinstance(self.of, Source) and self.of.part == "value":
            return str(self.name)
        return f"{self.of}.{self.name}" if isinstance(self.name, str) else f"{self.of}[{self.name}]"


_INFIX = {"=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "div", "and", "or", "<=>", "like", "rlike"}


@dataclass(frozen=True, eq=False)
class Call(Expression):
    """A function of Spark SQL by its name there."""

    function: str
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        said = [str(argument) for argument in self.arguments]
        match self.function, said:
            case name, [one, other] if name in _INFIX:
                return f"({one} {name} {other})"
            case "not", [one]:
                return f"(NOT {one})"
            case "negative", [one]:
                return f"(- {one})"
            case "isnull", [one]:
                return f"({one} IS NULL)"
            case "isnotnull", [one]:
                return f"({one} IS NOT NULL)"
            case "in", [one, *rest]:
                return f"({one} IN ({', '.join(rest)}))"
        return f"{self.function}({', '.join(said)})"


@dataclass(frozen=True, eq=False)
class Cast(Expression):
    """A value brought to another type."""

    of: Expression
    to: DataType

    def __str__(self) -> str:
        return f"CAST({self.of} AS {str(self.to).upper()})"


def lit(constant: object) -> Expression:
    """A constant as a column; a column stays what it is."""
    return constant if isinstance(constant, Expression) else Literal(constant)


def col(path: str) -> Expression:
    """A field of the record's value; dots lead into structs."""
    return _walk(Source("value"), path)


def key(path: str = "") -> Expression:
    """The record's key, or a field of it."""
    return _walk(Source("key"), path)


def value(path: str = "") -> Expression:
    """The record's value as a whole, or a field of it."""
    return _walk(Source("value"), path)


def left(path: str = "") -> Expression:
    """In a join: the left value, or a field of it."""
    return _walk(Source("left"), path)


def right(path: str = "") -> Expression:
    """In a join: the right value, or a field of it."""
    return _walk(Source("right"), path)


def timestamp() -> Expression:
    """The record's timestamp, milliseconds since 1970."""
    return Source("timestamp")


def window_start() -> Expression:
    """The start of the window in a windowed key."""
    return Source("window_start")


def window_end() -> Expression:
    """The end of the window in a windowed key."""
    return Source("window_end")


def _walk(at: Expression, path: str) -> Expression:
    for name in path.split(".") if path else ():
        at = Field(at, name)
    return at
