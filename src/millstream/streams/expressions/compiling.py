"""From a tree to a Python function and its type.

A compiled column is called with `(key, value, timestamp, right)`; in a join `value` is the left side. Types are worked
out once, here, so that a misspelt field or a sum of a text is refused when the topology is built; where a schema is
missing the type is ANY and Python's value decides when the record comes. Closures are used instead of generated code:
they are half as fast and can be read.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from millstream.streams.expressions import arithmetic, casting, library, patterns
from millstream.streams.expressions.errors import ExpressionError
from millstream.streams.expressions.forms import FORMS, Compiled, common
from millstream.streams.expressions.tree import Call, Cast, Expression, Field, Literal, Source
from millstream.streams.types import (
    ANY,
    BINARY,
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    INT_MIN,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    Array,
    DataType,
    Map,
    Struct,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[Any, Any, int, Any], Any]


@dataclass(frozen=True)
class Scope:
    """The types of what a column may refer to; None where there is no such thing."""

    key: DataType = ANY
    value: DataType = ANY
    right: DataType | None = None
    windowed: bool = False


def compile_expression(expression: Expression, scope: Scope) -> Compiled:
    """Turn a column into a function; TypeError if its types don't fit."""
    match expression:
        case Literal(constant):
            return _constant(constant)
        case Source(part):
            return _source(part, scope)
        case Field(of, name):
            return _field(compile_expression(of, scope), name, of)
        case Cast(of, to):
            return _cast(compile_expression(of, scope), to)
        case Call(function, arguments):
            compiled = [compile_expression(argument, scope) for argument in arguments]
            try:
                return _call(function, compiled, arguments)
            except TypeError as wrong:
                raise TypeError(f"{expression}: {wrong}") from None
    raise TypeError(f"{expression!r} is not a column")


def _constant(constant: Any) -> Compiled:
    kind = _literal_type(constant)
    if kind == Array(DOUBLE):
        constant = [None if each is None else float(each) for each in constant]
    return Compiled(lambda _key, _value, _timestamp, _right: constant, kind)


def _literal_type(constant: object) -> DataType:
    match constant:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return INT if INT_MIN <= constant <= INT_MAX else LONG
        case float():
            return DOUBLE
        case str():
            return STRING
        case bytes():
            return BINARY
        case list() | tuple():
            return Array(common([_literal_type(each) for each in constant])[0] if constant else ANY)
    raise TypeError(f"{constant!r} cannot be a constant in a column")


def _source(part: str, scope: Scope) -> Compiled:
    match part:
        case "key":
            if scope.windowed:
                return Compiled(lambda key, _value, _timestamp, _right: key.key, scope.key)
            return Compiled(lambda key, _value, _timestamp, _right: key, scope.key)
        case "value" | "left":
            if part == "left" and scope.right is None:
                raise TypeError("left() has a meaning in a join only")
            return Compiled(lambda _key, value, _timestamp, _right: value, scope.value)
        case "right":
            if scope.right is None:
                raise TypeError("right() has a meaning in a join only")
            return Compiled(lambda _key, _value, _timestamp, right: right, scope.right)
        case "timestamp":
            return Compiled(lambda _key, _value, timestamp, _right: timestamp, TIMESTAMP)
    return _window_bound(part, scope)


def _window_bound(part: str, scope: Scope) -> Compiled:
    if part not in ("window_start", "window_end"):
        raise TypeError(f"a record has no part {part!r}")
    if not scope.windowed:
        raise TypeError(f"{part}() needs a windowed key")
    if part == "window_start":
        return Compiled(lambda key, _value, _timestamp, _right: key.window.start_ms, TIMESTAMP)
    return Compiled(lambda key, _value, _timestamp, _right: key.window.end_ms, TIMESTAMP)


def _field(of: Compiled, name: str | int, tree: Expression) -> Compiled:
    run, kind = of
    if isinstance(kind, Struct) and isinstance(name, str):
        field_type = kind.field(name)
        if field_type is None:
            names = [each for each, _ in kind.fields]
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            raise TypeError(f"{tree} has no field {name!r}: {hint}")
        if kind.of is not None:
            take = attrgetter(name)
            return Compiled(lambda k, v, t, r: None if (held := run(k, v, t, r)) is None else take(held), field_type)
        return Compiled(lambda k, v, t, r: None if (held := run(k, v, t, r)) is None else held.get(name), field_type)
    if isinstance(kind, Map):
        return Compiled(lambda k, v, t, r: None if (held := run(k, v, t, r)) is None else held.get(name), kind.value)
    if isinstance(kind, Array) and isinstance(name, int):
        return Compiled(lambda k, v, t, r: library.item(run(k, v, t, r), name), kind.element)
    if kind in (ANY, NULL):
        return Compiled(_any_field(run, name, of_value=isinstance(tree, Source) and tree.part == "value"), ANY)
    raise TypeError(f"{tree} is a {kind}: it has no field {name!r}")


def _any_field(run: Run, name: str | int, *, of_value: bool) -> Run:
    """A field of what has no schema, mostly of a dict that is the record's value: that way is the short one."""
    if of_value:
        return lambda _k, v, _t, _r: v.get(name) if type(v) is dict else library.any_field(v, name)
    return lambda k, v, t, r: library.any_field(run(k, v, t, r), name)


def _cast(of: Compiled, to: DataType) -> Compiled:
    run, convert = of.run, casting.converter(of.type, to)
    return Compiled(lambda k, v, t, r: None if (held := run(k, v, t, r)) is None else convert(held), to)


def _call(function: str, arguments: list[Compiled], trees: tuple[Expression, ...]) -> Compiled:
    runs = [argument.run for argument in arguments]
    kinds = [argument.type for argument in arguments]
    if function in arithmetic.OPERATORS:
        operation, kind = arithmetic.operator(function, kinds)
        if len(trees) == 2 and isinstance(trees[1], Literal) and trees[1].constant is not None:
            return Compiled(_with_constant(function, operation, runs[0], trees[1].constant), kind)
        return Compiled(_null_safe(function, operation, runs), kind)
    special = FORMS.get(function)
    if special is not None:
        return special(runs, kinds, trees)
    if function not in library.FUNCTIONS:
        near = difflib.get_close_matches(function, [*library.FUNCTIONS, *FORMS], 1)
        raise TypeError(f"there is no function {function!r}" + (f": did you mean {near[0]!r}?" if near else ""))
    operation, kind = library.prepare(function, kinds)
    _constants(function, trees)
    return Compiled(_null_safe(function, operation, runs), kind)


def _constants(function: str, trees: tuple[Expression, ...]) -> None:
    """Arguments that Spark wants to be constants must be, and those that are constants are looked at now."""
    if function == "round" and any(_varies(tree) for tree in trees[1:]):
        raise TypeError("the digits must be a constant, as in Spark")
    if function in ("rlike", "split", "regexp_replace"):
        pattern = trees[1]
        if isinstance(pattern, Literal) and isinstance(pattern.constant, str):
            try:
                patterns.regex(pattern.constant)
            except ExpressionError as wrong:
                raise TypeError(str(wrong)) from None


def _varies(tree: Expression) -> bool:
    match tree:
        case Source():
            return True
        case Field(of, _) | Cast(of, _):
            return _varies(of)
        case Call(_, arguments):
            return any(map(_varies, arguments))
    return False


# What Python's functions raise for values that nobody declared and that do not fit.
_BARE = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError)


def _said(function: str, wrong: Exception, *values: Any) -> ExpressionError:
    if isinstance(wrong, ExpressionError):
        return wrong
    return ExpressionError(f"{function} of {', '.join(map(repr, values))}: {wrong}")


def _null_safe(function: str, operation: Callable[..., Any], runs: list[Any]) -> Callable[[Any, Any, int, Any], Any]:
    """Null if any argument is null, as nearly every function of SQL."""
    if len(runs) == 2:
        return _null_safe_two(function, operation, *runs)

    def run(k: Any, v: Any, t: int, r: Any) -> Any:
        values = []
        for each in runs:
            value = each(k, v, t, r)
            if value is None:
                return None
            values.append(value)
        try:
            return operation(*values)
        except _BARE as wrong:
            raise _said(function, wrong, *values) from None

    return run


def _null_safe_two(function: str, operation: Callable[..., Any], one: Run, other: Run) -> Run:
    def run(k: Any, v: Any, t: int, r: Any) -> Any:
        if (a := one(k, v, t, r)) is None or (b := other(k, v, t, r)) is None:
            return None
        try:
            return operation(a, b)
        except _BARE as wrong:
            raise _said(function, wrong, a, b) from None

    return run


def _with_constant(function: str, operation: Callable[..., Any], one: Run, constant: Any) -> Run:
    def run(k: Any, v: Any, t: int, r: Any) -> Any:
        if (a := one(k, v, t, r)) is None:
            return None
        try:
            return operation(a, constant)
        except _BARE as wrong:
            raise _said(function, wrong, a, constant) from None

    return run
