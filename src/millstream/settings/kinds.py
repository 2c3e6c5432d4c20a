"""The kinds of value a setting can have, read and written as Apache Kafka reads and writes them.

A kind turns the text of a properties file into a typed value and back. It refuses what Kafka refuses: Python's own
`int("1_000")` or `bool("no")` would accept values that Apache Kafka, started on the same file, would not.

Every start of a broker imports this package, so patterns are compiled when first used, here and in its other modules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

_DECIMAL_NUMBER = r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"


class Password(str):
    """A secret. It prints as stars; `reveal` is the one way to its text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[hidden]"

    __str__ = __repr__

    def reveal(self) -> str:
        return str.__str__(self)


class Kind(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """One kind of value: Kafka's name for it, its code in DescribeConfigs, and the way to and from text."""

    name: str
    code: int
    parse: Callable[[str], T]
    render: Callable[[Any], str]
    article: str

    @property
    def optional(self) -> Kind[T | None]:
        """The same kind for a setting that may have no value at all."""
        return self  # type: ignore[return-value]


def _whole_number(bits: int) -> Callable[[str], int]:
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def parse(text: str) -> int:
        digits = text[1:] if text[:1] in ("+", "-") else text
        if not (digits.isascii() and digits.isdigit()):
            raise ValueError("it is not a whole number")
        number = int(text) if len(text) <= 20 else highest + 1
        if not lowest <= number <= highest:
            raise ValueError(f"it does not fit between {lowest} and {highest}")
        return number

    return parse


def _boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in {"true", "false"}:
        raise ValueError("it is neither true nor false")
    return lowered == "true"


def _decimal(text: str) -> float:
    if not re.fullmatch(_DECIMAL_NUMBER, text):
        raise ValueError("it is not a number")
    return float(text.rstrip("fFdD") if text[-1:] in "fFdD" else text)


def _list(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(",")) if text else ()


def _render_decimal(number: float) -> str:
    """As Java prints a double: 0.5, 1.7976931348623157E308."""
    if number in {float("inf"), float("-inf")}:
        return "Infinity" if number > 0 else "-Infinity"
    text = repr(float(number))
    mantissa, exponent_mark, exponent = text.partition("e")
    if not exponent_mark:
        return text
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


BOOLEAN: Kind[bool] = Kind("boolean", 1, _boolean, lambda value: "true" if value else "false", "true or false")
STRING: Kind[str] = Kind("string", 2, str, str, "a text")
INT: Kind[int] = Kind("int", 3, _whole_number(32), str, "a whole number")
SHORT: Kind[int] = Kind("short", 4, _whole_number(16), str, "a whole number")
LONG: Kind[int] = Kind("long", 5, _whole_number(64), str, "a whole number")
DOUBLE: Kind[float] = Kind("double", 6, _decimal, _render_decimal, "a number")
LIST: Kind[tuple[str, ...]] = Kind("list", 7, _list, ",".join, "a comma-separated list")
CLASS: Kind[str] = Kind("class", 8, str, str, "a class name")
PASSWORD: Kind[Password] = Kind("password", 9, Password, lambda _: "[hidden]", "a secret")
