"""Functions and columns of a plan as plain Python functions of (key, value, timestamp)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.expressions import Scope, compile_expression
from millstream.streams.expressions.tree import Expression
from millstream.streams.interpret.errors import NoTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.plan.nodes import Schema

    Bound = Callable[[Any, Any, int], Any]


def scope_of(schema: Schema, right: Schema | None = None) -> Scope:
    return Scope(schema.key, schema.value, None if right is None else right.value, schema.windowed)


def condition(function: Any, schema: Schema) -> Bound:
    """True where it holds."""
    if isinstance(function, Expression):
        run = compile_expression(function, scope_of(schema)).run
        return lambda key, value, timestamp: run(key, value, timestamp, None) is True
    return lambda key, value, _timestamp: function(key, value)


def negated_condition(function: Any, schema: Schema) -> Bound:
    """True where a function does not hold; for a column, where it is false: null is neither."""
    if isinstance(function, Expression):
        run = compile_expression(function, scope_of(schema)).run
        return lambda key, value, timestamp: run(key, value, timestamp, None) is False
    return lambda key, value, _timestamp: not function(key, value)


def of_both(function: Any, schema: Schema) -> Bound:
    """A function of key and value."""
    if isinstance(function, Expression):
        run = compile_expression(function, scope_of(schema)).run
        return lambda key, value, timestamp: run(key, value, timestamp, None)
    return lambda key, value, _timestamp: function(key, value)


def topic(function: Any, schema: Schema, node: str) -> Bound:
    """The topic that a record goes to: without one it can go nowhere."""
    choose = of_both(function, schema)

    def named(key: Any, value: Any, timestamp: int) -> Any:
        found = choose(key, value, timestamp)
        if not isinstance(found, str) or not found:
            raise NoTopic(f"{node}: the topic that was chosen for the record with key {key!r} is {found!r}")
        return found

    return named


def of_value(function: Any, schema: Schema, *, with_key: bool) -> Bound:
    """A function of the value, and of the key if that was asked for."""
    if isinstance(function, Expression) or with_key:
        return of_both(function, schema)
    return lambda _key, value, _timestamp: function(value)


def pair(mapper: Any, schema: Schema) -> Bound:
    """A new key and value."""
    if isinstance(mapper, tuple):
        to_key, to_value = (compile_expression(each, scope_of(schema)).run for each in mapper)
        return lambda key, value, timestamp: (
            to_key(key, value, timestamp, None),
            to_value(key, value, timestamp, None),
        )
    return lambda key, value, _timestamp: mapper(key, value)


def joiner(function: Any, this: Schema, other: Schema, *, with_key: bool) -> Callable[[Any, Any, int, Any], Any]:
    """A function of (key, left, timestamp, right)."""
    if isinstance(function, Expression):
        return compile_expression(function, scope_of(this, other)).run
    if with_key:
        return lambda key, left, _timestamp, right: function(key, left, right)
    return lambda _key, left, _timestamp, right: function(left, right)
