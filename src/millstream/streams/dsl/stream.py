"""KStream: records one after the other. The verbs on records one by one are in records.py; here are those that bring
streams, topics, tables and processors together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.streams.dsl.branches import BranchedStream
from millstream.streams.dsl.records import RecordVerbs
from millstream.streams.errors import TopologyError
from millstream.streams.expressions.tree import Expression
from millstream.streams.plan.names import Suffixed
from millstream.streams.plan.nodes import (
    Merge,
    Process,
    Schema,
    Sink,
    ToTable,
)
from millstream.streams.plan.stores import KeyValueStore
from millstream.streams.types import ANY, STRING
from millstream.streams.windows import JoinWindows

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.dsl.grouped import KGroupedStream
    from millstream.streams.dsl.table import GlobalKTable, KTable
    from millstream.streams.plan.drafting import Flow
    from millstream.streams.plan.nodes import JoinKind

    Function = Expression | Callable[..., Any]


class KStream(RecordVerbs):
    """A stream of records."""

    # -- several streams

    def split(self, *, name: str | None = None) -> BranchedStream:
        """Each record to the first branch that takes it."""
        return BranchedStream(self, name)

    def branch(self, *predicates: Function) -> list[KStream]:
        """A stream for each predicate; what none takes is dropped."""
        branched = self.split()
        for predicate in predicates:
            branched.branch(predicate)
        return list(branched.no_default_branch().values())

    def merge(self, other: KStream, *, name: str | None = None) -> KStream:
        """The records of both, in no order between them."""
        self.draft.own(other.draft, "merge")
        schema = self.flow.schema if self.flow.schema == other.flow.schema else Schema()
        node = Merge(name=self._name(name, "KSTREAM-MERGE-"), inputs=(self.flow.node, other.flow.node), schema=schema)
        same_key = self.flow.key_serde == other.flow.key_serde
        same_value = self.flow.value_serde == other.flow.value_serde
        return self._then(
            node,
            key_serde=self.flow.key_serde if same_key else None,
            value_serde=self.flow.value_serde if same_value else None,
            sources=tuple(dict.fromkeys((*self.flow.sources, *other.flow.sources))),
            key_changed=self.flow.key_changed or other.flow.key_changed,
        )

    # -- through and to topics

    def repartition(
        self, *, partitions: int | None = None, key: Any = None, value: Any = None, name: str | None = None
    ) -> KStream:
        """Through an internal topic that this application owns."""
        prefix = name or self.draft.names.node("KSTREAM-REPARTITION-")
        moved = self.draft.repartition(self.flow, prefix, key=key, value=value, partitions=partitions)
        return KStream(self.draft, moved)

    def through(self, topic: str, *, key: Any = None, value: Any = None, partitions: int | None = None) -> KStream:
        """To a topic of yours, and on from there."""
        from millstream.streams.dsl.builder import stream_of

        key_serde, value_serde = self.draft.key_serde(self.flow, key), self.draft.value_serde(self.flow, value)
        self.to(topic, key=key_serde, value=value_serde)
        return stream_of(self.draft, (topic,), key_serde, value_serde, partitions=partitions)

    def to(
        self,
        topic: str | Function,
        *,
        key: Any = None,
        value: Any = None,
        partitioner: Callable[[Any, Any, int], int | None] | None = None,
        name: str | None = None,
    ) -> None:
        """To a topic; a function or a column chooses one for each record."""
        node = Sink(
            name=self._name(name, "KSTREAM-SINK-"),
            inputs=(self.flow.node,),
            schema=self.flow.schema,
            topic=topic,
            key_serde=self.draft.key_serde(self.flow, key),
            value_serde=self.draft.value_serde(self.flow, value),
            partitioner=partitioner,
        )
        if isinstance(topic, Expression):
            _, kind = self.draft.result(topic, self.flow.scope)
            if kind not in (STRING, ANY):
                raise TopologyError(f"{topic} is a {kind}, not the name of a topic")
        self.draft.add(node)

    def to_table(
        self, *, store: str | None = None, key: Any = None, value: Any = None, name: str | None = None
    ) -> KTable:
        """Each record as the new value of its key; null deletes it."""
        from millstream.streams.dsl.table import KTable

        own = self._name(name, "KSTREAM-TOTABLE-")
        store_name = store or self.draft.names.store("KSTREAM-TOTABLE-")
        flow = self.flow
        key_serde, value_serde = self.draft.key_serde(flow, key), self.draft.value_serde(flow, value)
        if flow.key_changed:
            flow = self.draft.repartition(flow, own, key=key_serde, value=value_serde)
        node = ToTable(
            name=own,
            inputs=(flow.node,),
            schema=flow.schema,
            store=KeyValueStore(store_name, key_serde, value_serde),
            materialized=store is not None,
        )
        self.draft.add(node)
        return KTable(self.draft, replace(flow, node=own, key_serde=key_serde, value_serde=value_serde))

    # -- processors

    def process(
        self,
        supplier: Callable[[], Any],
        *stores: str,
        key: Any = None,
        value: Any = None,
        name: str | None = None,
    ) -> KStream:
        """A processor of your own, with the stores that it uses; `supplier` makes one."""
        return self._process(
            supplier, stores, key, value, name or self.draft.names.node("KSTREAM-PROCESSOR-"), keeps_key=False
        )

    def process_values(
        self, supplier: Callable[[], Any], *stores: str, value: Any = None, name: str | None = None
    ) -> KStream:
        """A processor that leaves the key alone, so nothing has to move behind it."""
        own = name or self.draft.names.node("KSTREAM-PROCESSVALUES-")
        return self._process(supplier, stores, None, value, own, keeps_key=True)

    def _process(
        self, supplier: Any, stores: tuple[str, ...], key: Any, value: Any, name: str, *, keeps_key: bool
    ) -> KStream:
        for store in stores:
            self.draft.store_named(store)
        key_serde, key_type = self.draft.result(None, self.flow.scope, key)
        value_serde, value_type = self.draft.result(None, self.flow.scope, value)
        old = self.flow.schema
        schema = Schema(old.key if keeps_key else key_type, value_type, windowed=old.windowed and keeps_key)
        node = Process(
            name=name, inputs=(self.flow.node,), schema=schema, supplier=supplier, stores=stores, keeps_key=keeps_key
        )
        if keeps_key:
            return self._then(node, value_serde=value_serde)
        return self._then(node, key_serde=key_serde, value_serde=value_serde, key_changed=True)

    # -- groups and joins

    def group_by_key(self, *, key: Any = None, value: Any = None, name: str | None = None) -> KGroupedStream:
        """The records of a key together."""
        from millstream.streams.dsl.grouped import KGroupedStream

        return KGroupedStream(self.draft, self._with_serdes(key, value), name)

    def group_by(
        self, selector: Function, *, key: Any = None, value: Any = None, name: str | None = None
    ) -> KGroupedStream:
        """The records of a new key together."""
        from millstream.streams.dsl.grouped import KGroupedStream

        moved = self.select_key(selector, key=key, name=name)
        return KGroupedStream(self.draft, moved._with_serdes(None, value), name)

    def _with_serdes(self, key: Any, value: Any) -> Flow:
        return replace(
            self.flow,
            key_serde=self.draft.key_serde(self.flow, key),
            value_serde=self.draft.value_serde(self.flow, value),
        )

    def join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Function,
        windows: JoinWindows | None = None,
        *,
        on: Function | None = None,
        with_key: bool = False,
        key: Any = None,
        value: Any = None,
        other_value: Any = None,
        result: Any = None,
        name: str | None = None,
        store: str | None = None,
    ) -> KStream:
        """Pairs only. A stream needs `windows`; a global table needs `on`, which takes its key from the record."""
        given = (key, value, other_value, result)
        return self._join("inner", other, joiner, windows, on, name, store, given, with_key=with_key)

    def left_join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Function,
        windows: JoinWindows | None = None,
        *,
        on: Function | None = None,
        with_key: bool = False,
        key: Any = None,
        value: Any = None,
        other_value: Any = None,
        result: Any = None,
        name: str | None = None,
        store: str | None = None,
    ) -> KStream:
        """Pairs, and records of this side that found none, with null."""
        given = (key, value, other_value, result)
        return self._join("left", other, joiner, windows, on, name, store, given, with_key=with_key)

    def outer_join(
        self,
        other: KStream,
        joiner: Function,
        windows: JoinWindows,
        *,
        with_key: bool = False,
        key: Any = None,
        value: Any = None,
        other_value: Any = None,
        result: Any = None,
        name: str | None = None,
        store: str | None = None,
    ) -> KStream:
        """Pairs, and records of either side that found none, with null."""
        given = (key, value, other_value, result)
        return self._join("outer", other, joiner, windows, None, name, store, given, with_key=with_key)

    def _join(
        self,
        kind: JoinKind,
        other: KStream | KTable | GlobalKTable,
        joiner: Function,
        windows: JoinWindows | None,
        on: Function | None,
        name: str | None,
        store: str | None,
        given: tuple[Any, Any, Any, Any],
        *,
        with_key: bool,
    ) -> KStream:
        from millstream.streams.dsl import stream_joins

        self.draft.own(other.draft, "join")
        names = Suffixed(self.draft.names, name)
        if isinstance(other, KStream):
            if not isinstance(windows, JoinWindows):
                raise TopologyError(f"a join of two streams needs windows such as within(…), not {windows!r}")
            flow = stream_joins.with_stream(
                self.draft, kind, (self.flow, other.flow), joiner, windows, names, store, given, with_key=with_key
            )
        elif other.is_global:
            if on is None:
                raise TopologyError("a join with a global table needs `on`: how to take its key from a record")
            flow = stream_joins.with_global(
                self.draft, kind, (self.flow, other.flow), on, joiner, names, given[3], with_key=with_key
            )
        else:
            if windows is not None:
                raise TopologyError("a join with a table has no windows: it takes the value of the moment")
            flow = stream_joins.with_table(
                self.draft, kind, (self.flow, other.flow), joiner, names, given, with_key=with_key
            )
        return KStream(self.draft, flow)
