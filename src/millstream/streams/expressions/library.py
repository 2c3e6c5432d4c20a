"""Functions of Spark SQL that take values which are not null: a table of what they take, their type and their code.

Where a text is wanted, numbers and booleans become one, as in Spark. The other way round Spark casts as well, and finds
out with each record whether the text was a number: that is refused when the topology is built, as `"4" + 1` is.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.streams.expressions import patterns
from millstream.streams.expressions.arithmetic import equality
from millstream.streams.expressions.casting import to_text
from millstream.streams.expressions.errors import ExpressionError
from millstream.streams.types import (
    ANY,
    BINARY,
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
    STRING,
    TIMESTAMP,
    Array,
    DataType,
    Map,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Convert = Callable[[Any], Any]


class Function(NamedTuple):
    """One entry: what it takes, how many of that at least, the type of its result, and the code.

    A type that is None is that of the first argument, which is a number.
    """

    takes: tuple[Callable[[DataType], Convert | None], ...]
    at_least: int
    result: DataType | None
    run: Callable[..., Any]


def prepare(name: str, kinds: list[DataType]) -> tuple[Callable[..., Any], DataType]:
    """The code of a function for arguments of these types, and the type of its result; TypeError if they don't fit."""
    entry = FUNCTIONS[name]
    if not entry.at_least <= len(kinds) <= len(entry.takes):
        raise TypeError(f"{name} does not take {len(kinds)} arguments")
    converts = [take(kind) for take, kind in zip(entry.takes, kinds, strict=False)]
    result = _number_type(kinds[0]) if entry.result is None else entry.result
    run = _array_contains(*kinds) if name == "array_contains" else entry.run
    run = run if not any(converts) else _converting(run, converts)
    return (_bounded(name, run, result) if name in _BOUNDED else run), result


def _converting(run: Callable[..., Any], converts: list[Convert | None]) -> Callable[..., Any]:
    if len(converts) == 1 and (only := converts[0]) is not None:
        return lambda value: run(only(value))
    return lambda *values: run(
        *[each if convert is None else convert(each) for each, convert in zip(values, converts, strict=True)]
    )


def _bounded(name: str, run: Callable[..., Any], kind: DataType) -> Callable[..., Any]:
    low, high = (INT_MIN, INT_MAX) if kind == INT else (LONG_MIN, LONG_MAX)

    def bounded(*values: Any) -> Any:
        found = run(*values)
        if type(found) is int and not low <= found <= high:
            raise ExpressionError(f"{name} of {values} is out of range for {LONG if kind == ANY else kind}")
        return found

    return bounded


def _text(kind: DataType) -> Convert | None:
    if kind not in (STRING, *NUMERIC, BOOLEAN, TIMESTAMP, ANY, NULL):
        raise TypeError(f"a {kind} is no text")
    return None if kind == STRING else to_text


def _text_or_bytes(kind: DataType) -> Convert | None:
    if kind == ANY:
        return lambda value: value if isinstance(value, bytes) else to_text(value)
    return None if kind == BINARY else _text(kind)


def _number(kind: DataType) -> Convert | None:
    if kind not in (*NUMERIC, TIMESTAMP, ANY, NULL):
        raise TypeError(f"a {kind} is no number")
    return _checked_number if kind == ANY else None


def _checked_number(value: Any) -> Any:
    if type(value) in (int, float):
        return value
    raise ExpressionError(f"{value!r} is no number")


def _number_type(kind: DataType) -> DataType:
    """Spark takes a null of no type for a double where it needs a number."""
    return DOUBLE if kind == NULL else LONG if kind == TIMESTAMP else kind


def _count(kind: DataType) -> Convert | None:
    if kind not in (INT, LONG, ANY, NULL):
        raise TypeError(f"a {kind} is no whole number")
    return None if kind == INT else _checked_count


def _checked_count(value: Any) -> int:
    if type(value) is int and INT_MIN <= value <= INT_MAX:
        return value
    raise ExpressionError(f"{value!r} is no int")


def _items(kind: DataType) -> Convert | None:
    if not isinstance(kind, Array | Map) and kind not in (ANY, NULL):
        raise TypeError(f"a {kind} has no items")
    return _checked_items if kind == ANY else None


def _list(kind: DataType) -> Convert | None:
    if not isinstance(kind, Array) and kind != ANY:
        raise TypeError(f"a {kind} is no array")
    return _checked_items if kind == ANY else None


def _checked_items(value: Any) -> Any:
    if isinstance(value, list | tuple | dict):
        return value
    raise ExpressionError(f"{value!r} has no items")


def _anything(kind: DataType) -> Convert | None:
    if kind == NULL:
        raise TypeError("a null without a type cannot be looked for")
    return None


def any_field(held: Any, name: str | int) -> Any:
    """A field of a value without a schema."""
    if held is None:
        return None
    if isinstance(held, dict):
        return held.get(name)
    if isinstance(name, int):
        return item(_checked_items(held), name)
    try:
        return getattr(held, name)
    except AttributeError:
        raise ExpressionError(f"{held!r} has no field {name!r}") from None


def item(held: Any, index: int) -> Any:
    if held is None:
        return None
    if not 0 <= index < len(held):
        raise ExpressionError(f"there is no item {index} among {len(held)}")
    return held[index]


def _substring(text: str, start: int, length: int | None = None) -> str:
    """Counted from 1; a start below zero counts from the end, as in Spark."""
    at = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if length is None else at + length
    return text[max(at, 0) : max(end, 0)]


# A double has up to 309 digits before its point.
_DIGITS = 400
_EXACT = Context(prec=2 * _DIGITS)


def _round(number: Any, digits: int = 0) -> Any:
    """Halves away from zero."""
    if isinstance(number, float) and (math.isnan(number) or math.isinf(number)):
        return number
    exact = Decimal(repr(number))
    places = exact.as_tuple().exponent
    if isinstance(places, int) and digits >= -places:
        return number
    if digits < -_DIGITS:
        return type(number)(0)
    rounded = exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _EXACT)
    # Spark goes through a decimal too, and there is no zero below zero among them.
    return int(rounded) if isinstance(number, int) else float(rounded) + 0.0


def _floor(number: Any) -> int:
    return 0 if math.isnan(number) else math.floor(number)


def _ceil(number: Any) -> int:
    return 0 if math.isnan(number) else math.ceil(number)


def _square_root(number: Any) -> float:
    return math.sqrt(number) if number >= 0 else math.nan


def _power(base: Any, exponent: Any) -> float:
    """As Java computes it: what is too large is infinite, and what is no real number is NaN."""
    base, exponent = float(base), float(exponent)
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    below_zero = math.copysign(1, base) < 0 and exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if below_zero else math.inf
    except ValueError:
        return math.nan if base != 0 else -math.inf if below_zero else math.inf


def _replace(text: str, old: str, new: str = "") -> str:
    return text.replace(old, new) if old else text


def _array_contains(items: DataType = ANY, wanted: DataType = ANY) -> Callable[..., Any]:
    same = equality([items.element if isinstance(items, Array) else ANY, wanted])

    def run(held: Any, looked_for: Any) -> bool | None:
        if any(each is not None and same(each, looked_for) for each in held):
            return True
        return None if None in held else False

    return run


# Their results are ints, and may be too large for their type.
_BOUNDED = {"abs", "round", "floor", "ceil"}
FUNCTIONS: dict[str, Function] = {
    "upper": Function((_text,), 1, STRING, str.upper),
    "lower": Function((_text,), 1, STRING, str.lower),
    "trim": Function((_text,), 1, STRING, lambda text: text.strip(" ")),
    "ltrim": Function((_text,), 1, STRING, lambda text: text.lstrip(" ")),
    "rtrim": Function((_text,), 1, STRING, lambda text: text.rstrip(" ")),
    "length": Function((_text_or_bytes,), 1, INT, len),
    "concat": Function((_text,) * 100, 1, STRING, lambda *parts: "".join(parts)),
    "substring": Function((_text, _count, _count), 2, STRING, _substring),
    "replace": Function((_text, _text, _text), 2, STRING, _replace),
    "reverse": Function((_text,), 1, STRING, lambda text: text[::-1]),
    "split": Function((_text, _text, _count), 2, Array(STRING), patterns.split),
    "instr": Function((_text, _text), 2, INT, lambda text, part: text.find(part) + 1),
    "contains": Function((_text, _text), 2, BOOLEAN, lambda text, part: part in text),
    "startswith": Function((_text, _text), 2, BOOLEAN, str.startswith),
    "endswith": Function((_text, _text), 2, BOOLEAN, str.endswith),
    "like": Function((_text, _text), 2, BOOLEAN, lambda text, like: patterns.like(like).fullmatch(text) is not None),
    "rlike": Function((_text, _text), 2, BOOLEAN, lambda text, old: patterns.regex(old).search(text) is not None),
    "regexp_replace": Function((_text, _text, _text), 3, STRING, patterns.replace),
    "abs": Function((_number,), 1, None, abs),
    "round": Function((_number, _count), 1, None, _round),
    "floor": Function((_number,), 1, LONG, _floor),
    "ceil": Function((_number,), 1, LONG, _ceil),
    "sqrt": Function((_number,), 1, DOUBLE, _square_root),
    "power": Function((_number, _number), 2, DOUBLE, _power),
    "size": Function((_items,), 1, INT, len),
    "array_contains": Function((_list, _anything), 2, BOOLEAN, _array_contains()),
}
