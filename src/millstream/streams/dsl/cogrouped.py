"""Cogrouped streams: several streams, grouped by the same key, folded into one table, each by a function of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from millstream.streams.dsl.grouped import KGroupedStream, checked_windows, store_for, table_flow
from millstream.streams.dsl.table import KTable
from millstream.streams.errors import TopologyError
from millstream.streams.plan.aggregations import Fold
from millstream.streams.plan.names import Suffixed
from millstream.streams.plan.nodes import Aggregate, Schema, TableMerge
from millstream.streams.serdes import serde_of
from millstream.streams.windows import SessionWindows, Windows

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.plan.drafting import Draft

_PREFIX = "COGROUPKSTREAM-AGGREGATE-"


@dataclass(frozen=True)
class CogroupedKStream:
    """The streams so far, each with its aggregator."""

    draft: Draft
    groups: tuple[tuple[KGroupedStream, Callable[[Any, Any, Any], Any]], ...]
    windows: Windows | None = None

    def cogroup(self, grouped: KGroupedStream, aggregator: Callable[[Any, Any, Any], Any]) -> CogroupedKStream:
        """One more stream: `aggregator(key, value, aggregate)`."""
        self.draft.own(grouped.draft, "cogroup")
        return replace(self, groups=(*self.groups, (grouped, aggregator)))

    def windowed_by(self, windows: Windows) -> CogroupedKStream:
        """In windows of time."""
        return replace(self, windows=checked_windows(windows))

    def aggregate(
        self,
        initializer: Callable[[], Any],
        merger: Callable[[Any, Any, Any], Any] | None = None,
        *,
        value: Any = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """The table of all of them."""
        if isinstance(self.windows, SessionWindows) and merger is None:
            raise TopologyError("sessions grow together: aggregate needs a merger(key, one, other) for them")
        draft, names = self.draft, Suffixed(self.draft.names, name)
        value_serde = serde_of(value) if value is not None else draft.default_value
        store_name = store or draft.names.store(_PREFIX)
        flows = []
        for grouped, _ in self.groups:
            flow = grouped.flow
            if flow.key_changed:
                flow = draft.repartition(flow, grouped.name or store_name, reuse=grouped.name is not None)
            flows.append(flow)
        first = flows[0]
        for flow in flows[1:]:
            draft.copartition(first, flow, "cogroup")
        key = draft.key_serde(first)
        kept = store_for(store_name, key, value_serde, self.windows)
        schema = Schema(first.schema.key, value_serde.type, windowed=self.windows is not None)
        parts = []
        for number, (flow, (_, aggregator)) in enumerate(zip(flows, self.groups, strict=True)):
            part = Aggregate(
                name=names.part(f"-cogroup-agg-{number}", _PREFIX),
                inputs=(flow.node,),
                schema=schema,
                aggregation=Fold(initializer, aggregator, merger=merger),
                store=kept,
                windows=self.windows,
            )
            draft.add(part)
            parts.append(part.name)
        merge = TableMerge(
            name=names.part("-cogroup-merge", "COGROUPKSTREAM-MERGE-"), inputs=tuple(parts), schema=schema, store=kept
        )
        draft.add(merge)
        sources = tuple(dict.fromkeys(source for flow in flows for source in flow.sources))
        return KTable(draft, replace(table_flow(merge, first, key, value_serde, self.windows), sources=sources))
