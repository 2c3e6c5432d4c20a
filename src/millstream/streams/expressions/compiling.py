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
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.streams.expressions import arithmetic, casting, library
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
    wider,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[Any, Any, int, Any], Any]


class Compiled(NamedTuple):
    """A function of (key, value, timestamp, right), and the type of what it returns."""

    run: Callable[[Any, Any, int, Any], Any]
    type: DataType


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
            return Compiled(lambda _key, _value, _timestamp, _right: constant, _literal_type(constant))
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
            return Array(_literal_type(constant[0]) if constant else ANY)
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
            return Compiled(_with_constant(operation, runs[0], trees[1].constant), kind)
        return Compiled(_null_safe(operation, runs), kind)
    special = _SPECIAL.get(function)
    if special is not None:
        return special(runs, kinds, trees)
    entry = library.FUNCTIONS.get(function)
    if entry is None:
        near = difflib.get_close_matches(function, [*library.FUNCTIONS, *_SPECIAL], 1)
        raise TypeError(f"there is no function {function!r}" + (f": did you mean {near[0]!r}?" if near else ""))
    if not entry.at_least <= len(kinds) <= entry.at_most:
        raise TypeError(f"{function} does not take {len(kinds)} arguments")
    return Compiled(_null_safe(entry.run, runs), entry.result(kinds))


def _null_safe(operation: Callable[..., Any], runs: list[Any]) -> Callable[[Any, Any, int, Any], Any]:
    """Null if any argument is null, as nearly every function of SQL."""
    if len(runs) == 1:
        (one,) = runs
        return lambda k, v, t, r: None if (a := one(k, v, t, r)) is None else operation(a)
    if len(runs) == 2:
        one, other = runs
        return lambda k, v, t, r: (
            None if (a := one(k, v, t, r)) is None or (b := other(k, v, t, r)) is None else operation(a, b)
        )

    def run(k: Any, v: Any, t: int, r: Any) -> Any:
        values = [each(k, v, t, r) for each in runs]
        return None if None in values else operation(*values)

    return run


def _with_constant(operation: Callable[..., Any], one: Run, constant: Any) -> Run:
    return lambda k, v, t, r: None if (a := one(k, v, t, r)) is None else operation(a, constant)


def _boolean(kinds: list[DataType]) -> None:
    for kind in kinds:
        if kind not in (BOOLEAN, ANY, NULL):
            raise TypeError(f"a {kind} is no condition")


def _and(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    _boolean(kinds)
    one, other = runs

    def run(k: Any, v: Any, t: int, r: Any) -> bool | None:
        a = one(k, v, t, r)
        if a is False:
            return False
        b = other(k, v, t, r)
        return False if b is False else None if a is None or b is None else True

    return Compiled(run, BOOLEAN)


def _or(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    _boolean(kinds)
    one, other = runs

    def run(k: Any, v: Any, t: int, r: Any) -> bool | None:
        a = one(k, v, t, r)
        if a is True:
            return True
        b = other(k, v, t, r)
        return True if b is True else None if a is None or b is None else False

    return Compiled(run, BOOLEAN)


def _not(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    _boolean(kinds)
    (one,) = runs
    return Compiled(lambda k, v, t, r: None if (a := one(k, v, t, r)) is None else not a, BOOLEAN)


def _is_null(runs: list[Any], _kinds: object, _trees: object) -> Compiled:
    (one,) = runs
    return Compiled(lambda k, v, t, r: one(k, v, t, r) is None, BOOLEAN)


def _is_not_null(runs: list[Any], _kinds: object, _trees: object) -> Compiled:
    (one,) = runs
    return Compiled(lambda k, v, t, r: one(k, v, t, r) is not None, BOOLEAN)


def _null_safe_equal(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    wider(*kinds)
    one, other = runs

    def run(k: Any, v: Any, t: int, r: Any) -> bool:
        a, b = one(k, v, t, r), other(k, v, t, r)
        return b is None if a is None else b is not None and arithmetic.equal(a, b)

    return Compiled(run, BOOLEAN)


def _in(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    for kind in kinds[1:]:
        wider(kinds[0], kind)
    one, *rest = runs

    def run(k: Any, v: Any, t: int, r: Any) -> bool | None:
        a = one(k, v, t, r)
        if a is None:
            return None
        values = [each(k, v, t, r) for each in rest]
        if any(b is not None and arithmetic.equal(a, b) for b in values):
            return True
        return None if None in values else False

    return Compiled(run, BOOLEAN)


def _common(kinds: list[DataType]) -> tuple[DataType, bool]:
    """The type of a choice between several, and whether ints must become doubles for it."""
    kind = kinds[0]
    for other in kinds[1:]:
        kind = wider(kind, other)
    return kind, kind == DOUBLE and any(each in (INT, LONG) for each in kinds)


def _coalesce(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    kind, to_double = _common(kinds)

    def run(k: Any, v: Any, t: int, r: Any) -> Any:
        for each in runs:
            a = each(k, v, t, r)
            if a is not None:
                return float(a) if to_double else a
        return None

    return Compiled(run, kind)


def _case(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    _boolean(kinds[0 : len(kinds) - len(kinds) % 2 : 2])
    otherwise = [kinds[-1]] if len(kinds) % 2 else [NULL]
    kind, to_double = _common(kinds[1::2] + otherwise)
    pairs = list(zip(runs[0::2], runs[1::2], strict=False))
    last = runs[-1] if len(runs) % 2 else None

    def run(k: Any, v: Any, t: int, r: Any) -> Any:
        for condition, then in pairs:
            if condition(k, v, t, r) is True:
                found = then(k, v, t, r)
                break
        else:
            found = None if last is None else last(k, v, t, r)
        return float(found) if to_double and found is not None else found

    return Compiled(run, kind)


def _extreme(pick: Callable[[Any, Any], bool]) -> Callable[[list[Any], list[DataType], object], Compiled]:
    def compiled(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
        kind, to_double = _common(kinds)

        def run(k: Any, v: Any, t: int, r: Any) -> Any:
            best = None
            for each in runs:
                a = each(k, v, t, r)
                if a is not None and (best is None or pick(a, best)):
                    best = a
            return float(best) if to_double and best is not None else best

        return Compiled(run, kind)

    return compiled


def _named_struct(runs: list[Any], kinds: list[DataType], trees: tuple[Expression, ...]) -> Compiled:
    names = [tree.constant for tree in trees[0::2] if isinstance(tree, Literal)]
    fields = list(zip(names, runs[1::2], strict=True))
    return Compiled(
        lambda k, v, t, r: {name: each(k, v, t, r) for name, each in fields},
        Struct(dict(zip(names, kinds[1::2], strict=True))),
    )


def _array(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    kind, _ = _common(kinds) if kinds else (ANY, False)
    return Compiled(lambda k, v, t, r: [each(k, v, t, r) for each in runs], Array(kind))


_SPECIAL: dict[str, Callable[[list[Any], list[DataType], tuple[Expression, ...]], Compiled]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "isnull": _is_null,
    "isnotnull": _is_not_null,
    "<=>": _null_safe_equal,
    "in": _in,
    "coalesce": _coalesce,
    "case": _case,
    "greatest": _extreme(arithmetic.greater),
    "least": _extreme(lambda a, b: arithmetic.greater(b, a)),
    "named_struct": _named_struct,
    "array": _array,
}
