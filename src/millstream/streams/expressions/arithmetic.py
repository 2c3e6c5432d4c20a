"""Operators on numbers and comparisons, as Spark SQL computes them in ANSI mode.

Ints stay ints and overflow with an error; `/` is a double and never divides by zero; `%` has the sign of its left side,
as in Java. NaN equals itself and is larger than every number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from millstream.streams.expressions.errors import ExpressionError
from millstream.streams.types import (
    ANY,
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    INT_MIN,
    LONG,
    LONG_MAX,
    LONG_MIN,
    NULL,
    NUMERIC,
    TIMESTAMP,
    DataType,
    wider,
)

if TYPE_CHECKING:
    from collections.abc import Callable

OPERATORS = {"+", "-", "*", "/", "%", "div", "negative", "=", "!=", "<", "<=", ">", ">="}


def operator(name: str, kinds: list[DataType]) -> tuple[Callable[..., Any], DataType]:
    """The function for two values that are not null, and the type of its result."""
    if name in _COMPARISONS:
        return _as_doubles(_COMPARISONS[name], kinds), BOOLEAN
    kind = _numeric(kinds)
    if name == "/":
        return _divide, DOUBLE
    if name == "div":
        if kind == DOUBLE:
            raise TypeError("div is for whole numbers")
        return _whole_divide, LONG
    # Spark takes a null of no type for a double where it needs a number.
    kind = DOUBLE if kind == NULL else kind
    if name == "%":
        return _remainder, kind
    if kind == DOUBLE:
        return _DOUBLES[name], DOUBLE
    return _bounded(name, kind), kind


def equality(kinds: list[DataType]) -> Callable[[Any, Any], bool]:
    """The function that says whether two values of these types, not null, are equal."""
    return _as_doubles(equal, kinds)


def to_double(number: Any) -> float:
    if type(number) is float:
        return number
    if type(number) is int:
        try:
            return float(number)
        except OverflowError:
            # Without the digits: beyond some thousands Python refuses to show them.
            raise ExpressionError(f"an integer of {number.bit_length()} bits is too large for a double") from None
    raise ExpressionError(f"{number!r} is no number")


def _as_doubles(compare: Callable[[Any, Any], bool], kinds: list[DataType]) -> Callable[[Any, Any], bool]:
    """Spark compares a bigint with a double as doubles; Python compares them exactly."""
    one, other = kinds
    if wider(one, other) == DOUBLE and (one in (LONG, TIMESTAMP) or other in (LONG, TIMESTAMP)):
        return lambda a, b: compare(to_double(a), to_double(b))
    return compare


def _numeric(kinds: list[DataType]) -> DataType:
    kind = NULL
    for each in kinds:
        each = LONG if each == TIMESTAMP else each
        if each not in (*NUMERIC, ANY, NULL):
            raise TypeError(f"a {each} is no number")
        kind = ANY if ANY in (kind, each) else wider(kind, each)
    return kind


def _bounded(name: str, kind: DataType) -> Callable[..., Any]:
    low, high = (INT_MIN, INT_MAX) if kind == INT else (LONG_MIN, LONG_MAX)
    compute = _DOUBLES[name]

    def run(*values: Any) -> Any:
        try:
            found = compute(*values)
        except TypeError:
            raise ExpressionError(f"{name} of {values}: not numbers") from None
        if type(found) is int and low <= found <= high:
            return found
        if type(found) is float:
            return found
        if isinstance(found, int):
            raise ExpressionError(f"{name} of {values} is out of range for {LONG if kind == ANY else kind}")
        raise ExpressionError(f"{name} of {values}: not numbers")

    return run


def _divide(a: Any, b: Any) -> float:
    if b == 0:
        raise ExpressionError("division by zero: use nullif or a CASE if null is wanted")
    # Not float(a), which would take a text too.
    return float((a * 1.0) / (b * 1.0))


def _whole_divide(a: Any, b: Any) -> int:
    if b == 0:
        raise ExpressionError("division by zero: use nullif or a CASE if null is wanted")
    if isinstance(a, float) or isinstance(b, float):
        raise ExpressionError(f"div of {a} and {b}: it is for whole numbers")
    found: int = abs(a) // abs(b)
    found = found if (a < 0) == (b < 0) else -found
    if not LONG_MIN <= found <= LONG_MAX:
        raise ExpressionError(f"div of {a} and {b} is out of range for {LONG}")
    return found


def _remainder(a: Any, b: Any) -> Any:
    if b == 0:
        raise ExpressionError("remainder by zero: use nullif or a CASE if null is wanted")
    if isinstance(a, float) or isinstance(b, float):
        return math.nan if math.isinf(a) else math.fmod(a, b)
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


_DOUBLES: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "negative": lambda a: -a,
}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def equal(a: Any, b: Any) -> bool:
    return bool(a == b) or (type(a) is float and math.isnan(a) and _is_nan(b))


def greater(a: Any, b: Any) -> bool:
    try:
        return bool(a > b) or (type(a) is float and math.isnan(a) and not _is_nan(b))
    except TypeError:
        raise ExpressionError(f"{a!r} and {b!r} cannot be compared") from None


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": equal,
    "!=": lambda a, b: not equal(a, b),
    ">": greater,
    "<": lambda a, b: greater(b, a),
    ">=": lambda a, b: not greater(b, a),
    "<=": lambda a, b: not greater(a, b),
}
