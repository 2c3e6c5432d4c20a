"""What is not null just because an argument is: conditions, choices, and what makes structs and arrays.

Each takes its arguments compiled, with their types and trees, and says what it is itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.streams.expressions import arithmetic
from millstream.streams.expressions.tree import Literal
from millstream.streams.types import ANY, BOOLEAN, DOUBLE, INT, LONG, NULL, TIMESTAMP, Array, DataType, Struct, wider

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.expressions.tree import Expression


class Compiled(NamedTuple):
    """A function of (key, value, timestamp, right), and the type of what it returns."""

    run: Callable[[Any, Any, int, Any], Any]
    type: DataType


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
    equal = arithmetic.equality(kinds)
    one, other = runs

    def run(k: Any, v: Any, t: int, r: Any) -> bool:
        a, b = one(k, v, t, r), other(k, v, t, r)
        return b is None if a is None else b is not None and equal(a, b)

    return Compiled(run, BOOLEAN)


def _null_if(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    equal = arithmetic.equality(kinds)
    one, other = runs

    def run(k: Any, v: Any, t: int, r: Any) -> Any:
        a = one(k, v, t, r)
        if a is None:
            return None
        b = other(k, v, t, r)
        return None if b is not None and equal(a, b) else a

    return Compiled(run, kinds[0])


def _in(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    # Spark brings all of them to one type, and compares then.
    _, to_double = common(kinds)
    equal = arithmetic.equality([LONG, DOUBLE]) if to_double and ANY not in kinds else arithmetic.equal
    one, *rest = runs

    def run(k: Any, v: Any, t: int, r: Any) -> bool | None:
        a = one(k, v, t, r)
        if a is None:
            return None
        values = [each(k, v, t, r) for each in rest]
        if any(b is not None and equal(a, b) for b in values):
            return True
        return None if None in values else False

    return Compiled(run, BOOLEAN)


def common(kinds: list[DataType]) -> tuple[DataType, bool]:
    """The type of a choice between several, and whether ints must become doubles for it."""
    kind = kinds[0]
    for other in kinds[1:]:
        kind = wider(kind, other)
    return kind, kind == DOUBLE and any(each in (INT, LONG, TIMESTAMP) for each in kinds)


def _coalesce(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    kind, to_double = common(kinds)

    def run(k: Any, v: Any, t: int, r: Any) -> Any:
        for each in runs:
            a = each(k, v, t, r)
            if a is not None:
                return arithmetic.to_double(a) if to_double else a
        return None

    return Compiled(run, kind)


def _case(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
    _boolean(kinds[0 : len(kinds) - len(kinds) % 2 : 2])
    otherwise = [kinds[-1]] if len(kinds) % 2 else [NULL]
    kind, to_double = common(kinds[1::2] + otherwise)
    pairs = list(zip(runs[0::2], runs[1::2], strict=False))
    last = runs[-1] if len(runs) % 2 else None

    def run(k: Any, v: Any, t: int, r: Any) -> Any:
        for condition, then in pairs:
            if condition(k, v, t, r) is True:
                found = then(k, v, t, r)
                break
        else:
            found = None if last is None else last(k, v, t, r)
        return arithmetic.to_double(found) if to_double and found is not None else found

    return Compiled(run, kind)


def _extreme(pick: Callable[[Any, Any], bool]) -> Callable[[list[Any], list[DataType], object], Compiled]:
    def compiled(runs: list[Any], kinds: list[DataType], _trees: object) -> Compiled:
        kind, to_double = common(kinds)

        def run(k: Any, v: Any, t: int, r: Any) -> Any:
            best = None
            for each in runs:
                a = each(k, v, t, r)
                if a is not None and (best is None or pick(a, best)):
                    best = a
            return arithmetic.to_double(best) if to_double and best is not None else best

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
    kind, to_double = common(kinds) if kinds else (ANY, False)

    def run(k: Any, v: Any, t: int, r: Any) -> list[Any]:
        values = [each(k, v, t, r) for each in runs]
        return [None if each is None else arithmetic.to_double(each) for each in values] if to_double else values

    return Compiled(run, Array(kind))


FORMS: dict[str, Callable[[list[Any], list[DataType], tuple[Expression, ...]], Compiled]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "isnull": _is_null,
    "isnotnull": _is_not_null,
    "<=>": _null_safe_equal,
    "in": _in,
    "nullif": _null_if,
    "coalesce": _coalesce,
    "case": _case,
    "greatest": _extreme(arithmetic.greater),
    "least": _extreme(lambda a, b: arithmetic.greater(b, a)),
    "named_struct": _named_struct,
    "array": _array,
}
