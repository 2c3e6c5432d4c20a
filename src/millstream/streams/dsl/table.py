"""KTable: the latest value of each key, and the verbs on it. A null value deletes a key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.streams.dsl.columns import named
from millstream.streams.errors import TopologyError
from millstream.streams.expressions import struct
from millstream.streams.expressions.tree import Expression
from millstream.streams.plan.names import Suffixed
from millstream.streams.plan.nodes import Suppress, TableFilter, TableMapValues, ToStream
from millstream.streams.plan.stores import KeyValueStore
from millstream.streams.types import ANY, BOOLEAN, NULL

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.dsl.grouped_table import KGroupedTable
    from millstream.streams.dsl.stream import KStream
    from millstream.streams.dsl.suppressed import Suppressed
    from millstream.streams.plan.drafting import Draft, Flow
    from millstream.streams.plan.nodes import AnyNode, JoinKind

    Function = Expression | Callable[..., Any]


class _Table:
    """What every table has: its place in the draft, and perhaps a store."""

    is_global: bool

    def __init__(self, draft: Draft, flow: Flow) -> None:
        self.draft = draft
        self.flow = flow

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.flow.node}, {self.flow.schema})"

    @property
    def store_name(self) -> str | None:
        """The name of the store that can be asked for values, if there is one."""
        store = self.draft.table_store(self.flow.node)
        return None if store is None else store.name


class KTable(_Table):
    """A table that changes."""

    is_global = False

    def _then(self, node: AnyNode, **changes: Any) -> KTable:
        self.draft.add(node)
        return KTable(self.draft, replace(self.flow, node=node.name, schema=node.schema, **changes))

    def filter(self, predicate: Function, *, store: str | None = None, name: str | None = None) -> KTable:
        """Keep the keys whose value fits; a key that no longer fits is deleted."""
        return self._filter(predicate, store, name, negated=False)

    def filter_not(self, predicate: Function, *, store: str | None = None, name: str | None = None) -> KTable:
        """Keep the keys whose value does not fit."""
        return self._filter(predicate, store, name, negated=True)

    def _filter(self, predicate: Function, store: str | None, name: str | None, *, negated: bool) -> KTable:
        _, kind = self.draft.result(predicate, self.flow.scope)
        if kind not in (BOOLEAN, ANY, NULL):
            raise TopologyError(f"{predicate} is a {kind}, not a condition")
        node = TableFilter(
            name=self.draft.names.or_node(name, "KTABLE-FILTER-"),
            inputs=(self.flow.node,),
            schema=self.flow.schema,
            # If the table is in a store anyway, no tombstones are sent for keys that were never there.
            sends_old_values=self.draft.enable_old_values(self.flow.node, force=False),
            predicate=predicate,
            negated=negated,
            store=self._store(store, self.flow.value_serde),
        )
        return self._then(node)

    def map_values(
        self,
        mapper: Function,
        *,
        with_key: bool = False,
        value: Any = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """A new value for each key."""
        serde, kind = self.draft.result(mapper, self.flow.scope, value)
        if kind == ANY and serde is not None:
            kind = serde.type
        node = TableMapValues(
            name=self.draft.names.or_node(name, "KTABLE-MAPVALUES-"),
            inputs=(self.flow.node,),
            schema=replace(self.flow.schema, value=kind),
            mapper=mapper,
            with_key=with_key,
            store=self._store(store, serde),
        )
        return self._then(node, value_serde=serde)

    def select(
        self, *, store: str | Expression | None = None, name: str | Expression | None = None, **columns: object
    ) -> KTable:
        """A struct of columns as the new value. `store` and `name` are texts; columns may be called that too."""
        fields, (own_store, own) = named(Expression, columns, store=store, name=name)
        return self.map_values(struct(**fields), store=own_store, name=own)

    def _store(self, name: str | None, value: Any) -> KeyValueStore | None:
        if name is None:
            return None
        return KeyValueStore(name, self.draft.key_serde(self.flow), value or self.draft.default_value)

    def to_stream(self, selector: Function | None = None, *, key: Any = None, name: str | None = None) -> KStream:
        """Every change as a record; a deletion is a record without value."""
        from millstream.streams.dsl.stream import KStream

        node = ToStream(
            name=self.draft.names.or_node(name, "KTABLE-TOSTREAM-"), inputs=(self.flow.node,), schema=self.flow.schema
        )
        self.draft.add(node)
        stream = KStream(self.draft, replace(self.flow, node=node.name, windows=None))
        return stream if selector is None else stream.select_key(selector, key=key)

    def suppress(self, suppressed: Suppressed) -> KTable:
        """Hold changes back, and let through the last one of each key."""
        wait_ms = suppressed.wait_ms
        if suppressed.final:
            if self.flow.windows is None:
                raise TopologyError("suppress until the window closes needs a windowed table directly before it")
            wait_ms = self.flow.windows.close_after_ms
        # What is held back must know the value that it replaces, so the table before must.
        self.draft.enable_old_values(self.flow.node)
        own = suppressed.name or self.draft.names.node("KTABLE-SUPPRESS-")
        store = f"{suppressed.name}-store" if suppressed.name else self.draft.names.store("KTABLE-SUPPRESS-")
        node = Suppress(
            name=own,
            inputs=(self.flow.node,),
            schema=self.flow.schema,
            wait_ms=wait_ms,
            final=suppressed.final,
            key_serde=self.draft.key_serde(self.flow),
            value_serde=self.draft.value_serde(self.flow),
            records_max=suppressed.records_max,
            shut_down_when_full=suppressed.shut_down_when_full,
            store_name=store,
        )
        return self._then(node)

    def group_by(
        self,
        mapper: Callable[[Any, Any], tuple[Any, Any]] | Expression,
        to_value: Expression | None = None,
        *,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> KGroupedTable:
        """Under new keys: a function that returns key and value, or two columns."""
        from millstream.streams.dsl.grouped_table import group_table

        return group_table(self.draft, self.flow, mapper, to_value, key, value, name)

    def join(
        self,
        other: KTable,
        joiner: Function,
        *,
        on: Function | None = None,
        with_key: bool = False,
        result: Any = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """Keys that are in both. With `on`, a foreign key taken from this table's value finds the other's row."""
        return self._join("inner", other, joiner, on, result, store, name, with_key=with_key)

    def left_join(
        self,
        other: KTable,
        joiner: Function,
        *,
        on: Function | None = None,
        with_key: bool = False,
        result: Any = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """All keys of this table, with null where the other has none."""
        return self._join("left", other, joiner, on, result, store, name, with_key=with_key)

    def outer_join(
        self,
        other: KTable,
        joiner: Function,
        *,
        with_key: bool = False,
        result: Any = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """All keys of both."""
        return self._join("outer", other, joiner, None, result, store, name, with_key=with_key)

    def _join(
        self,
        kind: JoinKind,
        other: KTable,
        joiner: Function,
        on: Function | None,
        result: Any,
        store: str | None,
        name: str | None,
        *,
        with_key: bool,
    ) -> KTable:
        from millstream.streams.dsl import table_joins

        self.draft.own(other.draft, "join of tables")
        names = Suffixed(self.draft.names, name)
        sides = (self.flow, other.flow)
        if on is None:
            flow = table_joins.by_key(self.draft, kind, sides, joiner, names, store, result, with_key=with_key)
        else:
            flow = table_joins.by_foreign_key(
                self.draft, kind, sides, on, joiner, names, store, result, with_key=with_key
            )
        return KTable(self.draft, flow)


class GlobalKTable(_Table):
    """A table of which every instance has all keys: it can be joined by anything, whatever its partitions."""

    is_global = True
