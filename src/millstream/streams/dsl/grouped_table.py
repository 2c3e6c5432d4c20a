"""Grouped tables: a change takes the old value out of its group and puts the new one into its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from millstream.streams.dsl import columns
from millstream.streams.dsl.table import KTable
from millstream.streams.errors import TopologyError
from millstream.streams.expressions.tree import Expression
from millstream.streams.plan.aggregations import Aggregation, ColumnAggregate, Count, Fold, Reduce
from millstream.streams.plan.names import Suffixed
from millstream.streams.plan.nodes import Schema, TableAggregate, TableGroup
from millstream.streams.plan.stores import KeyValueStore
from millstream.streams.serdes import LONG_SERDE, Serde, serde_of
from millstream.streams.types import ANY

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.plan.drafting import Draft, Flow


def group_table(
    draft: Draft, flow: Flow, mapper: Any, to_value: Any, key: Any, value: Any, name: str | None
) -> KGroupedTable:
    """What `KTable.group_by` returns."""
    if isinstance(mapper, Expression) != isinstance(to_value, Expression):
        raise TopologyError("group_by takes one function, or two columns: the key's and the value's")
    key_serde, key_type = draft.result(mapper if isinstance(mapper, Expression) else None, flow.scope, key)
    value_serde, value_type = draft.result(to_value, flow.scope, value)
    select = draft.names.or_node(name, "KTABLE-SELECT-")
    draft.enable_old_values(flow.node)
    schema = Schema(
        key_serde.type if key_type == ANY and key_serde else key_type,
        value_serde.type if value_type == ANY and value_serde else value_type,
    )
    grouped = replace(flow, key_serde=key_serde, value_serde=value_serde, schema=schema, windows=None)
    both = (mapper, to_value) if isinstance(mapper, Expression) else mapper
    return KGroupedTable(draft, grouped, select, both, name)


@dataclass(frozen=True)
class KGroupedTable:
    """A table's rows together under new keys."""

    draft: Draft
    flow: Flow
    select: str
    mapper: Any
    name: str | None

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable:
        """How many rows."""
        return self._aggregate(Count(), LONG_SERDE, "KTABLE-AGGREGATE-", store, name)

    def reduce(
        self,
        adder: Callable[[Any, Any], Any],
        subtractor: Callable[[Any, Any], Any],
        *,
        store: str | None = None,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """`adder(aggregate, value)` for what enters, `subtractor(aggregate, value)` for what leaves."""
        serde = self.draft.value_serde(self.flow, value)
        return self._aggregate(Reduce(adder, subtractor), serde, "KTABLE-REDUCE-", store, name)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        adder: Callable[[Any, Any, Any], Any],
        subtractor: Callable[[Any, Any, Any], Any],
        *,
        value: Any = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`adder(key, value, aggregate)` for what enters, `subtractor(key, value, aggregate)` for what leaves."""
        serde = serde_of(value) if value is not None else self.draft.default_value
        return self._aggregate(Fold(initializer, adder, subtractor), serde, "KTABLE-AGGREGATE-", store, name)

    def sum(self, column: Expression, *, store: str | None = None, name: str | None = None) -> KTable:
        """The sum of a column."""
        return self._columns({"": columns.sum_of(column)}, store, name)

    def avg(self, column: Expression, *, store: str | None = None, name: str | None = None) -> KTable:
        """The mean of a column."""
        return self._columns({"": columns.avg_of(column)}, store, name)

    def agg(
        self,
        *,
        store: str | ColumnAggregate | None = None,
        name: str | ColumnAggregate | None = None,
        **aggregates: ColumnAggregate,
    ) -> KTable:
        """A struct of several sums, counts and means."""
        wanted, (own_store, own) = columns.named(ColumnAggregate, aggregates, store=store, name=name)
        return self._columns(columns.checked(wanted), own_store, own)

    def _columns(self, wanted: dict[str, ColumnAggregate], store: str | None, name: str | None) -> KTable:
        for call in wanted.values():
            if call.function in ("min", "max"):
                raise TopologyError(
                    f"{call} of a table: when the row with the extreme leaves, the next one is not known. "
                    "Aggregate to a list, or take it of the stream of changes."
                )
        aggregation, kept, shown = columns.plan_columns(wanted, self.flow.scope)
        if shown is None:
            return self._aggregate(aggregation, serde_of(kept), "KTABLE-AGGREGATE-", store, name)
        of_parts = columns.store_of_parts(store)
        return self._aggregate(aggregation, serde_of(kept), "KTABLE-AGGREGATE-", of_parts, name).map_values(
            shown, store=store
        )

    def _aggregate(
        self, aggregation: Aggregation, value: Serde, prefix: str, store: str | None, name: str | None
    ) -> KTable:
        draft = self.draft
        # Also of a reduce: that is how Kafka Streams names it.
        store_name = store or draft.names.store("KTABLE-AGGREGATE-")
        names = Suffixed(draft.names, name)
        sink = names.part("-sink", "KSTREAM-SINK-")
        source = names.part("-source", "KSTREAM-SOURCE-")
        own = names.or_node(prefix)
        topic = f"{self.name or store_name}-repartition"
        draft.names.take(topic, "internal topic")
        key_serde = draft.key_serde(self.flow)
        group = TableGroup(
            name=source,
            inputs=(self.flow.node,),
            schema=self.flow.schema,
            mapper=self.mapper,
            select=self.select,
            topic=topic,
            sink=sink,
            key_serde=key_serde,
            value_serde=draft.value_serde(self.flow),
        )
        draft.add(group)
        node = TableAggregate(
            name=own,
            inputs=(group.name,),
            schema=Schema(self.flow.schema.key, value.type),
            aggregation=aggregation,
            store=KeyValueStore(store_name, key_serde, value),
        )
        draft.add(node)
        flow = replace(
            self.flow, node=own, key_serde=key_serde, value_serde=value, schema=node.schema, sources=(source,)
        )
        return KTable(draft, flow)
