"""Aggregations as functions: how an aggregate starts, grows, shrinks and merges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.streams.expressions import ExpressionError, compile_expression
from millstream.streams.expressions.arithmetic import greater
from millstream.streams.plan.aggregations import Aggregation, Columns, Count, Fold, Reduce
from millstream.streams.types import LONG_MAX, LONG_MIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.expressions import Scope
    from millstream.streams.plan.aggregations import ColumnAggregate


class Folding(NamedTuple):
    """`add` and `subtract` take (key, value, timestamp, aggregate), `merge` (key, one, other)."""

    start: Callable[[], Any]
    add: Callable[[Any, Any, int, Any], Any]
    subtract: Callable[[Any, Any, int, Any], Any]
    merge: Callable[[Any, Any, Any], Any]


def folding(aggregation: Aggregation, scope: Scope) -> Folding:
    """The functions of an aggregation over records with these types."""
    match aggregation:
        case Count():
            return Folding(
                lambda: 0,
                lambda _key, _value, _timestamp, count: count + 1,
                lambda _key, _value, _timestamp, count: count - 1,
                lambda _key, one, other: one + other,
            )
        case Reduce(reducer, subtractor):
            return Folding(
                lambda: None,
                lambda _key, value, _timestamp, held: value if held is None else reducer(held, value),
                lambda _key, value, _timestamp, held: _there(subtractor)(held, value),
                lambda _key, one, other: other if one is None else reducer(one, other),
            )
        case Fold(initializer, aggregator, subtractor, merger):
            return Folding(
                initializer,
                lambda key, value, _timestamp, held: aggregator(key, value, held),
                lambda key, value, _timestamp, held: _there(subtractor)(key, value, held),
                merger or _unmerged,
            )
        case Columns():
            return _columns(aggregation, scope)


def _unmerged(_key: Any, _one: Any, _other: Any) -> Any:
    raise AssertionError("only sessions merge, and the draft asks for a merger there")


def _there(function: Callable[..., Any] | None) -> Callable[..., Any]:
    assert function is not None, "the draft refuses an aggregation that lacks what its place needs"
    return function


def _columns(aggregation: Columns, scope: Scope) -> Folding:
    parts = [(name, _column(call, scope)) for name, call in aggregation.columns]
    if aggregation.scalar:
        return parts[0][1]

    def each(function: str) -> Callable[[Any, Any, int, Any], Any]:
        steps = [(name, getattr(part, function)) for name, part in parts]
        return lambda key, value, timestamp, held: {
            name: step(key, value, timestamp, held[name]) for name, step in steps
        }

    return Folding(
        lambda: {name: part.start() for name, part in parts},
        each("add"),
        each("subtract"),
        lambda key, one, other: {name: part.merge(key, one[name], other[name]) for name, part in parts},
    )


def _column(call: ColumnAggregate, scope: Scope) -> Folding:
    if call.of is None:
        return folding(Count(), scope)
    run = compile_expression(call.of, scope).run
    if call.function == "count":

        def counted(key: Any, value: Any, timestamp: int, held: Any, step: int = 1) -> Any:
            return held if run(key, value, timestamp, None) is None else held + step

        return Folding(lambda: 0, counted, lambda k, v, t, held: counted(k, v, t, held, -1), lambda _k, a, b: a + b)
    combine = _COMBINE[call.function]

    def add(key: Any, value: Any, timestamp: int, held: Any) -> Any:
        new = run(key, value, timestamp, None)
        return held if new is None else new if held is None else combine(held, new)

    def subtract(key: Any, value: Any, timestamp: int, held: Any) -> Any:
        old = run(key, value, timestamp, None)
        return held if old is None else _plus(held, -old)

    def merge(_key: Any, one: Any, other: Any) -> Any:
        return other if one is None else one if other is None else combine(one, other)

    return Folding(lambda: None, add, subtract, merge)


def _plus(held: Any, new: Any) -> Any:
    total = held + new
    if isinstance(total, int) and not LONG_MIN <= total <= LONG_MAX:
        raise ExpressionError(f"a sum of {total} is out of range for bigint")
    return total


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": _plus,
    "min": lambda held, new: new if greater(held, new) else held,
    "max": lambda held, new: new if greater(new, held) else held,
}
