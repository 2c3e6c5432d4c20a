"""A column as a piece of Spark SQL: the way to Spark's own operators.

The parts of a record are columns of the same names: key, value, timestamp, and in a join value (the left side) and
right. A windowed key is a struct of key and window. Nothing here knows Spark; `expr(to_sql(column))` does there what
compiling does here, and tests hold the two together.
"""

from __future__ import annotations

from millstream.streams.expressions.tree import Call, Cast, Expression, Field, Literal, Source
from millstream.streams.types import INT_MAX, INT_MIN

_INFIX = {"=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "div", "and", "or", "<=>", "like", "rlike"}
_PARTS = {"left": "`value`", "window_start": "`key`.`window`.`start_ms`", "window_end": "`key`.`window`.`end_ms`"}


def to_sql(column: Expression, *, windowed: bool = False) -> str:
    """The column in Spark SQL; `windowed` says that keys are windowed."""
    match column:
        case Literal(constant):
            return _literal(constant)
        case Source("key") if windowed:
            return "`key`.`key`"
        case Source(part):
            return _PARTS.get(part, f"`{part}`")
        case Field(of, name):
            held = to_sql(of, windowed=windowed)
            return f"{held}[{name}]" if isinstance(name, int) else f"{held}.`{name.replace('`', '``')}`"
        case Cast(of, to):
            return f"CAST({to_sql(of, windowed=windowed)} AS {to})"
        case Call(function, arguments):
            return _call(function, [to_sql(argument, windowed=windowed) for argument in arguments])
    raise TypeError(f"{column!r} is not a column")


def _literal(constant: object) -> str:
    match constant:
        case None:
            return "NULL"
        case bool():
            return "true" if constant else "false"
        case float():
            # As text, since a plain 1.5 is a decimal in SQL.
            return f"CAST('{constant!r}' AS DOUBLE)"
        case int():
            return str(constant) if INT_MIN <= constant <= INT_MAX else f"{constant}L"
        case str():
            # Spark puts its settings in the place of ${...}, even within a text.
            said = "".join(_ESCAPES.get(letter, letter) for letter in constant)
            return "'" + said.replace("${", "\\u0024{") + "'"
        case bytes():
            return f"X'{constant.hex()}'"
        case list() | tuple():
            return f"array({', '.join(map(_literal, constant))})"
    raise TypeError(f"{constant!r} cannot be a constant in a column")


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def _call(function: str, arguments: list[str]) -> str:
    match function, arguments:
        case name, [one, other] if name in _INFIX:
            return f"({one} {name} {other})"
        case "not", [one]:
            return f"(NOT {one})"
        case "negative", [one]:
            return f"(- {one})"
        case "in", [one]:
            return f"CASE WHEN {one} IS NULL THEN NULL ELSE false END"
        case "in", [one, *rest]:
            return f"({one} IN ({', '.join(rest)}))"
        case "case", _:
            pairs = zip(arguments[0::2], arguments[1::2], strict=False)
            cases = " ".join(f"WHEN {condition} THEN {then}" for condition, then in pairs)
            otherwise = f" ELSE {arguments[-1]}" if len(arguments) % 2 else ""
            return f"CASE {cases}{otherwise} END"
    return f"{function}({', '.join(arguments)})"
