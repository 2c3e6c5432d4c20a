"""Functions of Spark SQL that take values which are not null: a table of name, number of arguments, type and code."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.streams.expressions.casting import to_text
from millstream.streams.expressions.errors import ExpressionError
from millstream.streams.types import ANY, BOOLEAN, DOUBLE, INT, LONG, NUMERIC, STRING, Array, DataType

if TYPE_CHECKING:
    from collections.abc import Callable


class Function(NamedTuple):
    """One entry: how many arguments, the type of the result from theirs, and the code."""

    at_least: int
    at_most: int
    result: Callable[[list[DataType]], DataType]
    run: Callable[..., Any]


def any_field(held: Any, name: str | int) -> Any:
    """A field of a value without a schema."""
    if held is None:
        return None
    if isinstance(held, dict):
        return held.get(name)
    if isinstance(name, int):
        return item(held, name)
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


def _text(kinds: list[DataType]) -> DataType:
    for kind in kinds:
        if kind not in (STRING, ANY) and kind not in NUMERIC:
            raise TypeError(f"a {kind} is no text")
    return STRING


def _number(kinds: list[DataType]) -> DataType:
    if kinds[0] not in (*NUMERIC, ANY):
        raise TypeError(f"a {kinds[0]} is no number")
    return kinds[0]


def _always(kind: DataType) -> Callable[[list[DataType]], DataType]:
    return lambda _kinds: kind


@lru_cache(1024)
def _like_pattern(pattern: str) -> re.Pattern[str]:
    parts, escaped = [], False
    for letter in pattern:
        if escaped:
            parts.append(re.escape(letter))
            escaped = False
        elif letter == "\\":
            escaped = True
        else:
            parts.append({"%": ".*", "_": "."}.get(letter, re.escape(letter)))
    return re.compile("".join(parts), re.DOTALL)


def _substring(text: str, start: int, length: int | None = None) -> str:
    """Counted from 1; a start below zero counts from the end, as in Spark."""
    at = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if length is None else at + length
    return text[max(at, 0) : max(end, 0)]


def _split(text: str, pattern: str, limit: int = -1) -> list[str]:
    if not pattern:
        # Java splits between all letters, Python also before the first and behind the last.
        parts = list(text) or [""]
        return parts if not 0 < limit < len(parts) else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return re.split(pattern, text, maxsplit=max(limit - 1, 0)) if limit != 1 else [text]


def _round(number: Any, digits: int = 0) -> Any:
    """Halves away from zero."""
    if isinstance(number, float) and (math.isnan(number) or math.isinf(number)):
        return number
    rounded = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return int(rounded) if isinstance(number, int) else float(rounded)


def _whole_result(kinds: list[DataType]) -> DataType:
    return ANY if _number(kinds) == ANY else LONG


def _square_root(number: Any) -> float:
    return math.sqrt(number) if number >= 0 else math.nan


def _replace(text: str, old: str, new: str = "") -> str:
    return text.replace(old, new) if old else text


FUNCTIONS: dict[str, Function] = {
    "upper": Function(1, 1, _text, lambda text: to_text(text).upper()),
    "lower": Function(1, 1, _text, lambda text: to_text(text).lower()),
    "trim": Function(1, 1, _text, lambda text: to_text(text).strip(" ")),
    "ltrim": Function(1, 1, _text, lambda text: to_text(text).lstrip(" ")),
    "rtrim": Function(1, 1, _text, lambda text: to_text(text).rstrip(" ")),
    "length": Function(1, 1, _always(INT), len),
    "concat": Function(1, 100, _always(STRING), lambda *parts: "".join(map(to_text, parts))),
    "substring": Function(2, 3, _always(STRING), _substring),
    "replace": Function(2, 3, _always(STRING), _replace),
    "reverse": Function(1, 1, _text, lambda text: to_text(text)[::-1]),
    "split": Function(2, 3, _always(Array(STRING)), _split),
    "instr": Function(2, 2, _always(INT), lambda text, part: text.find(part) + 1),
    "contains": Function(2, 2, _always(BOOLEAN), lambda text, part: part in text),
    "startswith": Function(2, 2, _always(BOOLEAN), lambda text, part: text.startswith(part)),
    "endswith": Function(2, 2, _always(BOOLEAN), lambda text, part: text.endswith(part)),
    "like": Function(2, 2, _always(BOOLEAN), lambda text, like: _like_pattern(like).fullmatch(text) is not None),
    "rlike": Function(2, 2, _always(BOOLEAN), lambda text, pattern: re.search(pattern, text) is not None),
    "regexp_replace": Function(3, 3, _always(STRING), lambda text, old, new: re.sub(old, new, text)),
    "abs": Function(1, 1, _number, abs),
    "round": Function(1, 2, _number, _round),
    "floor": Function(1, 1, _whole_result, math.floor),
    "ceil": Function(1, 1, _whole_result, math.ceil),
    "sqrt": Function(1, 1, _always(DOUBLE), _square_root),
    "power": Function(2, 2, _always(DOUBLE), lambda base, exponent: float(base) ** float(exponent)),
    "nullif": Function(2, 2, lambda kinds: kinds[0], lambda value, other: None if value == other else value),
    "size": Function(1, 1, _always(INT), len),
    "array_contains": Function(2, 2, _always(BOOLEAN), lambda items, each: each in items),
}
