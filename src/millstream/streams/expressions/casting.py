"""Casts, as Spark SQL's ANSI mode makes them: what has no result is an error, not a null."""

from __future__ import annotations

import math
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
            found = int(value.strip()) if isinstance(value, str) else math.trunc(value)
        except (ValueError, OverflowError, TypeError):
            raise ExpressionError(f"{value!r} cannot be cast to {name}") from None
        if not low <= found <= high:
            raise ExpressionError(f"{value!r} is out of range for {name}")
        return found

    return convert


def _double(value: Any) -> float:
    try:
        return float(value.strip()) if isinstance(value, str) else float(value)
    except (ValueError, TypeError):
        raise ExpressionError(f"{value!r} cannot be cast to double") from None


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        text = value.strip().lower()
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
