"""Verbs on the records of a stream one by one: filters and maps.

A function takes what Kafka Streams' lambda takes, `(key, value)` nearly everywhere; a column can stand in its place.
Where a function returns a new key or value, `key=` and `value=` say how it becomes bytes; a column's type, or a
function's return annotation, says it by itself.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.streams.dsl.columns import named
from millstream.streams.errors import TopologyError
from millstream.streams.expressions import struct
from millstream.streams.expressions.tree import Expression
from millstream.streams.plan.nodes import (
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    Peek,
    Schema,
    SelectKey,
)
from millstream.streams.types import ANY, BOOLEAN, NULL, Array

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from millstream.streams.plan.drafting import Draft, Flow
    from millstream.streams.plan.nodes import AnyNode

    Function = Expression | Callable[..., Any]


class RecordVerbs:
    """What can be done with each record."""

    def __init__(self, draft: Draft, flow: Flow) -> None:
        self.draft = draft
        self.flow = flow

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.flow.node}, {self.flow.schema})"

    def _name(self, own: str | None, prefix: str) -> str:
        return self.draft.names.or_node(own, prefix)

    def _then(self, node: AnyNode, **changes: Any) -> Self:
        self.draft.add(node)
        return type(self)(self.draft, replace(self.flow, node=node.name, schema=node.schema, **changes))

    # -- records one by one

    def filter(self, predicate: Function, *, name: str | None = None) -> Self:
        """Keep the records for which the predicate holds; null does not hold."""
        return self._filter(predicate, negated=False, name=name)

    def filter_not(self, predicate: Function, *, name: str | None = None) -> Self:
        """Keep the records for which a function does not hold; of a column, those for which it is false."""
        return self._filter(predicate, negated=True, name=name)

    def _filter(self, predicate: Function, *, negated: bool, name: str | None) -> Self:
        self._check_condition(predicate)
        node = Filter(
            name=self._name(name, "KSTREAM-FILTER-"),
            inputs=(self.flow.node,),
            schema=self.flow.schema,
            predicate=predicate,
            negated=negated,
        )
        return self._then(node)

    def _check_condition(self, predicate: Function) -> None:
        _, kind = self.draft.result(predicate, self.flow.scope)
        if kind not in (BOOLEAN, ANY, NULL):
            raise TopologyError(f"{predicate} is a {kind}, not a condition")

    def map(
        self,
        mapper: Callable[[Any, Any], tuple[Any, Any]] | Expression,
        to_value: Expression | None = None,
        *,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> Self:
        """New key and value: a function that returns both, or two columns."""
        key_serde, key_type = self.draft.result(_column(mapper), self.flow.scope, key)
        value_serde, value_type = self.draft.result(to_value, self.flow.scope, value)
        if isinstance(mapper, Expression) != isinstance(to_value, Expression):
            raise TopologyError("map takes one function, or two columns: the key's and the value's")
        both = (mapper, to_value) if isinstance(mapper, Expression) and to_value is not None else mapper
        node = Map(
            name=self._name(name, "KSTREAM-MAP-"),
            inputs=(self.flow.node,),
            schema=Schema(_declared(key_type, key_serde), _declared(value_type, value_serde)),
            mapper=both,  # type: ignore[arg-type]
        )
        return self._then(node, key_serde=key_serde, value_serde=value_serde, key_changed=True)

    def map_values(
        self, mapper: Function, *, with_key: bool = False, value: Any = None, name: str | None = None
    ) -> Self:
        """A new value for each record; the key stays, so nothing has to move."""
        serde, kind = self.draft.result(mapper, self.flow.scope, value)
        node = MapValues(
            name=self._name(name, "KSTREAM-MAPVALUES-"),
            inputs=(self.flow.node,),
            schema=replace(self.flow.schema, value=_declared(kind, serde)),
            mapper=mapper,
            with_key=with_key,
        )
        return self._then(node, value_serde=serde)

    def select(self, *, name: str | Expression | None = None, **columns: object) -> Self:
        """A struct of columns as the new value: `select(user=col("user"), cents=col("price") * 100)`.

        A text as `name` names the node; a column under that name is one like the others.
        """
        fields, (own,) = named(Expression, columns, name=name)
        return self.map_values(struct(**fields), name=own)

    def flat_map(
        self, mapper: Callable[[Any, Any], Any], *, key: Any = None, value: Any = None, name: str | None = None
    ) -> Self:
        """Any number of (key, value) for each record."""
        key_serde, key_type = self.draft.result(None, self.flow.scope, key)
        value_serde, value_type = self.draft.result(None, self.flow.scope, value)
        node = FlatMap(
            name=self._name(name, "KSTREAM-FLATMAP-"),
            inputs=(self.flow.node,),
            schema=Schema(_declared(key_type, key_serde), _declared(value_type, value_serde)),
            mapper=mapper,
        )
        return self._then(node, key_serde=key_serde, value_serde=value_serde, key_changed=True)

    def flat_map_values(
        self, mapper: Function, *, with_key: bool = False, value: Any = None, name: str | None = None
    ) -> Self:
        """Any number of values for each record, under its key; a column must be an array."""
        if isinstance(mapper, Expression):
            _, kind = self.draft.result(mapper, self.flow.scope)
            if not isinstance(kind, Array) and kind != ANY:
                raise TopologyError(f"{mapper} is a {kind}, not an array")
            element = kind.element if isinstance(kind, Array) else ANY
            serde, _ = self.draft.result(None, self.flow.scope, value if value is not None else _or_none(element))
        else:
            serde, element = self.draft.result(None, self.flow.scope, value)
        node = FlatMapValues(
            name=self._name(name, "KSTREAM-FLATMAPVALUES-"),
            inputs=(self.flow.node,),
            schema=replace(self.flow.schema, value=_declared(element, serde)),
            mapper=mapper,
            with_key=with_key,
        )
        return self._then(node, value_serde=serde)

    def select_key(self, selector: Function, *, key: Any = None, name: str | None = None) -> Self:
        """A new key for each record. Before the next join or grouping the records move to where the key belongs."""
        serde, kind = self.draft.result(selector, self.flow.scope, key)
        node = SelectKey(
            name=self._name(name, "KSTREAM-KEY-SELECT-"),
            inputs=(self.flow.node,),
            schema=Schema(_declared(kind, serde), self.flow.schema.value),
            selector=selector,
        )
        return self._then(node, key_serde=serde, key_changed=True)

    def peek(self, action: Callable[[Any, Any], object], *, name: str | None = None) -> Self:
        """Call a function with each record on its way."""
        node = Peek(
            name=self._name(name, "KSTREAM-PEEK-"), inputs=(self.flow.node,), schema=self.flow.schema, action=action
        )
        return self._then(node)

    def foreach(self, action: Callable[[Any, Any], object], *, name: str | None = None) -> None:
        """Call a function with each record; the stream ends here."""
        self._end(self._name(name, "KSTREAM-FOREACH-"), action)

    def print(self, *, label: str | None = None, name: str | None = None) -> None:
        """Write each record to standard output as `[label]: key, value`; the stream ends here."""
        own = self._name(name, "KSTREAM-PRINTER-")
        shown = label or self.flow.node
        self._end(own, lambda key, value: sys.stdout.write(f"[{shown}]: {key}, {value}\n"))

    def _end(self, name: str, action: Callable[[Any, Any], object]) -> None:
        node = Peek(name=name, inputs=(self.flow.node,), schema=self.flow.schema, action=action, last=True)
        self.draft.add(node)


def _column(function: Any) -> Any:
    """A function that returns a pair says nothing of the key alone."""
    return function if isinstance(function, Expression) else None


def _declared(kind: Any, serde: Any) -> Any:
    return serde.type if kind == ANY and serde is not None else kind


def _or_none(kind: Any) -> Any:
    return None if kind == ANY else kind
