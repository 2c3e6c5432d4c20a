"""Casts, as Spark SQL's ANSI mode makes them: what has no result is an error, not a null."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

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
    STRING,
    TIMESTAMP,
    DataType,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# What Java takes for white space around a number: no more than this, where Python takes all of Unicode's.
_BLANK = "".join(map(chr, range(33)))
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[dDfF]?")
_NAMED = {"nan": math.nan} | {
    f"{sign}{name}": value
    for name in ("inf", "infinity")
    for sign, value in (("", math.inf), ("+", math.inf), ("-", -math.inf))
}
_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}


def converter(source: DataType, target: DataType) -> Callable[[Any], Any]:
    """The function that casts a value that is not null."""
    if target in (source, ANY):
        return lambda value: value
    if target not in _TO or source not in (*_TO, ANY, NULL):
        raise TypeError(f"a {source} cannot be cast to {target}")
    if BINARY in (source, target) and source not in (STRING, BINARY, ANY):
        raise TypeError(f"a {source} cannot be cast to {target}")
    return _TO[target]


def to_text(value: Any) -> str:
    """As Java prints it."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            return value.decode("utf-8", "replace")
        case float():
            return _double_text(value)
        case int():
            return str(value)
    raise ExpressionError(f"{value!r} has no text form in SQL")


def _double_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(value, ".17f") if "e" in repr(value) else repr(value)
        return text.rstrip("0") + "0" if text.endswith("00") else text
    mantissa, _, exponent = format(value, f".{len(repr(value).replace('.', '')) + 2}e").partition("e")
    digits = repr(value).partition("e")[0].lstrip("-").replace(".", "").strip("0") or "0"
    shown = f"{digits[0]}.{digits[1:] or '0'}"
    return f"{'-' if mantissa.startswith('-') else ''}{shown}E{int(exponent)}"


def _whole(low: int, high: int, name: str) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        try:
            found = _whole_of_text(value) if isinstance(value, str) else math.trunc(value)
        except (ValueError, OverflowError, TypeError):
            raise ExpressionError(f"{value!r} cannot be cast to {name}") from None
        if found == LONG_MAX + 1 == high + 1 and isinstance(value, float):
            # The largest bigint has no double of its own: Spark lets the next one pass for it.
            return high
        if not low <= found <= high:
            raise ExpressionError(f"{value!r} is out of range for {name}")
        return found

    return convert


def _whole_of_text(text: str) -> int:
    digits = text.strip(_BLANK + "\x7f")
    if _WHOLE.fullmatch(digits) is None:
        raise ValueError(text)
    return int(digits)


def _double(value: Any) -> float:
    if isinstance(value, str):
        return _double_of_text(value)
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            # Without the digits: beyond some thousands Python refuses to show them.
            raise ExpressionError(f"an integer of {int(value).bit_length()} bits is too large for a double") from None
    raise ExpressionError(f"{value!r} cannot be cast to double")


def _double_of_text(text: str) -> float:
    """As Java reads it, with its letters behind the number, and Spark's names for what is no number."""
    digits = text.strip(_BLANK)
    if (decimal := _DECIMAL.fullmatch(digits)) is not None:
        return float(decimal[1])
    if (hexadecimal := _HEXADECIMAL.fullmatch(digits)) is not None:
        try:
            return float.fromhex(hexadecimal[1])
        except OverflowError:
            return -math.inf if digits.startswith("-") else math.inf
    named = math.nan if digits in ("+NaN", "-NaN") else _NAMED.get(digits.lower())
    if named is None:
        raise ExpressionError(f"{text!r} cannot be cast to double")
    return named


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        text = value.strip(_BLANK + "\x7f").lower()
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
        raise ExpressionError(f"{value!r} cannot be cast to boolean")
    return bool(value)


def _binary(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


_TO: dict[DataType, Callable[[Any], Any]] = {
    STRING: to_text,
    INT: _whole(INT_MIN, INT_MAX, "int"),
    LONG: _whole(LONG_MIN, LONG_MAX, "bigint"),
    TIMESTAMP: _whole(LONG_MIN, LONG_MAX, "timestamp"),
    DOUBLE: _double,
    BOOLEAN: _boolean,
    BINARY: _binary,
}
