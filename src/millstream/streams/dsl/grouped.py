"""Grouped streams: count, reduce, aggregate and sums of columns, whole or in windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from millstream.streams.dsl import columns
from millstream.streams.dsl.table import KTable
from millstream.streams.errors import TopologyError
from millstream.streams.plan.aggregations import Aggregation, ColumnAggregate, Count, Fold, Reduce
from millstream.streams.plan.nodes import Aggregate, Schema
from millstream.streams.plan.stores import KeyValueStore, SessionStore, Store, WindowStore
from millstream.streams.serdes import (
    LONG_SERDE,
    Serde,
    SessionWindowedSerde,
    TimeWindowedSerde,
    serde_of,
)
from millstream.streams.windows import SessionWindows, Windows

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.dsl.cogrouped import CogroupedKStream
    from millstream.streams.expressions.tree import Expression
    from millstream.streams.plan.drafting import Draft, Flow


@dataclass(frozen=True)
class KGroupedStream:
    """The records of a key together, in windows if `windows` is set."""

    draft: Draft
    flow: Flow
    name: str | None = None
    windows: Windows | None = None
    final: bool = False

    def windowed_by(self, windows: Windows) -> KGroupedStream:
        """In windows of time: tumbling, hopping, sliding or session."""
        return replace(self, windows=checked_windows(windows))

    def emit_final(self) -> KGroupedStream:
        """One result for each window, when it has closed."""
        if self.windows is None:
            raise TopologyError("without windows there is no final result: a stream has no end")
        return replace(self, final=True)

    def cogroup(self, aggregator: Callable[[Any, Any, Any], Any]) -> CogroupedKStream:
        """The first of several streams that are folded into one table."""
        from millstream.streams.dsl.cogrouped import CogroupedKStream

        return CogroupedKStream(self.draft, ((self, aggregator),))

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable:
        """How many records."""
        return self._aggregate(Count(), LONG_SERDE, "KSTREAM-AGGREGATE-", store, name)

    def reduce(
        self,
        reducer: Callable[[Any, Any], Any],
        *,
        store: str | None = None,
        value: Any = None,
        name: str | None = None,
    ) -> KTable:
        """`reducer(aggregate, value)`; the first value is the first aggregate."""
        serde = self.draft.value_serde(self.flow, value)
        return self._aggregate(Reduce(reducer), serde, "KSTREAM-REDUCE-", store, name)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
        merger: Callable[[Any, Any, Any], Any] | None = None,
        *,
        value: Any = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """`aggregator(key, value, aggregate)`; sessions also need `merger(key, one, other)`. `value`: its serde."""
        if isinstance(self.windows, SessionWindows) and merger is None:
            raise TopologyError("sessions grow together: aggregate needs a merger(key, one, other) for them")
        serde = serde_of(value) if value is not None else self.draft.default_value
        fold = Fold(initializer, aggregator, merger=merger)
        return self._aggregate(fold, serde, "KSTREAM-AGGREGATE-", store, name)

    def sum(self, column: Expression, *, store: str | None = None, name: str | None = None) -> KTable:
        """The sum of a column; nulls are left out."""
        return self._columns({"": columns.sum_of(column)}, store, name)

    def min(self, column: Expression, *, store: str | None = None, name: str | None = None) -> KTable:
        """The smallest value of a column; nulls are left out."""
        return self._columns({"": columns.min_of(column)}, store, name)

    def max(self, column: Expression, *, store: str | None = None, name: str | None = None) -> KTable:
        """The largest value of a column; nulls are left out."""
        return self._columns({"": columns.max_of(column)}, store, name)

    def avg(self, column: Expression, *, store: str | None = None, name: str | None = None) -> KTable:
        """The mean of a column as a double; nulls are left out."""
        return self._columns({"": columns.avg_of(column)}, store, name)

    def agg(
        self,
        *,
        store: str | ColumnAggregate | None = None,
        name: str | ColumnAggregate | None = None,
        **aggregates: ColumnAggregate,
    ) -> KTable:
        """A struct of several: `agg(orders=count_of(), total=sum_of(col("price")))`."""
        wanted, (own_store, own) = columns.named(ColumnAggregate, aggregates, store=store, name=name)
        return self._columns(columns.checked(wanted), own_store, own)

    def _columns(self, wanted: dict[str, ColumnAggregate], store: str | None, name: str | None) -> KTable:
        aggregation, kept, shown = columns.plan_columns(wanted, self.flow.scope)
        serde = serde_of(kept)
        if shown is None:
            return self._aggregate(aggregation, serde, "KSTREAM-AGGREGATE-", store, name)
        # A store in windows can be asked by key and time, one of mapped values cannot: so it holds what is kept.
        of_parts = store if self.windows is not None else columns.store_of_parts(store)
        table = self._aggregate(aggregation, serde, "KSTREAM-AGGREGATE-", of_parts, name)
        return table.map_values(shown, store=store if self.windows is None else None)

    def _aggregate(
        self, aggregation: Aggregation, value: Serde, prefix: str, store: str | None, name: str | None
    ) -> KTable:
        store_name = store or self.draft.names.store(prefix)
        own = self.draft.names.or_node(name, prefix)
        flow = self.flow
        if flow.key_changed:
            flow = self.draft.repartition(flow, self.name or store_name, reuse=self.name is not None)
        key = self.draft.key_serde(flow)
        node = Aggregate(
            name=own,
            inputs=(flow.node,),
            schema=Schema(flow.schema.key, value.type, windowed=self.windows is not None),
            aggregation=aggregation,
            store=store_for(store_name, key, value, self.windows),
            windows=self.windows,
            emit_final=self.final,
        )
        self.draft.add(node)
        return KTable(self.draft, table_flow(node, flow, key, value, self.windows))


def checked_windows(windows: Windows) -> Windows:
    """What `windowed_by` was given, if it is windows."""
    if not isinstance(windows, Windows):
        raise TopologyError(f"windowed_by takes windows, such as tumbling(60_000), not {windows!r}")
    return windows


def store_for(name: str, key: Serde, value: Serde, windows: Windows | None) -> Store:
    """The store that an aggregation of this shape keeps."""
    if windows is None:
        return KeyValueStore(name, key, value)
    if isinstance(windows, SessionWindows):
        return SessionStore(name, key, value, windows.retention_ms)
    return WindowStore(name, key, value, windows.size_ms, windows.retention_ms)


def table_flow(node: Any, flow: Flow, key: Serde, value: Serde, windows: Windows | None) -> Flow:
    """What comes out of an aggregation: its keys are windowed if it is."""
    key_serde: Serde = key
    if isinstance(windows, SessionWindows):
        key_serde = SessionWindowedSerde(key)
    elif windows is not None:
        key_serde = TimeWindowedSerde(key, windows.size_ms)
    return replace(flow, node=node.name, key_serde=key_serde, value_serde=value, schema=node.schema, windows=windows)
