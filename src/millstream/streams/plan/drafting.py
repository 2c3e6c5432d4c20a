"""Drafting a plan: the part that the DSL and SQL share.

A Draft hands out names, adds nodes, and decides what Kafka Streams decides while a topology is written: where a stream
must go through an internal topic because its key has changed, which tables need a store, and which must send the value
that a change replaces. The last two depend on what is added later, so they are kept aside and written into the nodes
when the plan is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from millstream.streams.errors import NotCopartitioned, TopologyError
from millstream.streams.expressions import Scope, compile_expression
from millstream.streams.expressions.tree import Expression
from millstream.streams.plan.checking import check_node
from millstream.streams.plan.fitting import fitting, returned_type
from millstream.streams.plan.names import GENERATED_REPARTITION, Names, nearest
from millstream.streams.plan.nodes import (
    AnyNode,
    ForeignKeyJoin,
    Process,
    Repartition,
    Schema,
    StreamGlobalJoin,
    StreamJoin,
    StreamSource,
    StreamTableJoin,
    Suppress,
    TableFilter,
    TableJoin,
    TableMapValues,
    TableMerge,
    TableNode,
    TableSource,
    ToTable,
)
from millstream.streams.plan.plan import Plan, matches, stores_of, topics_read
from millstream.streams.serdes import (
    JSON_SERDE,
    STRING_SERDE,
    BytesSerde,
    NumberSerde,
    Serde,
    SessionWindowedSerde,
    StringSerde,
    TimeWindowedSerde,
    serde_of,
)
from millstream.streams.types import ANY, NULL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.streams.plan.stores import KeyValueStore, Store
    from millstream.streams.types import DataType
    from millstream.streams.windows import Windows


@dataclass(frozen=True)
class Flow:
    """What comes out of a node: a stream, or a table's changes."""

    node: str
    key_serde: Serde | None
    value_serde: Serde | None
    schema: Schema
    # The source nodes whose partitions these records are in.
    sources: tuple[str, ...]
    # The key has changed, so equal keys may be in different partitions.
    key_changed: bool = False
    # Behind a windowed aggregation: the windows, for `suppress`.
    windows: Windows | None = None

    @property
    def scope(self) -> Scope:
        return Scope(self.schema.key, self.schema.value, windowed=self.schema.windowed)


class Draft:
    """A plan that is being written."""

    def __init__(self, key: Any = STRING_SERDE, value: Any = JSON_SERDE) -> None:
        self.names = Names()
        self.default_key = serde_of(key)
        self.default_value = serde_of(value)
        self._nodes: dict[str, AnyNode] = {}
        self._materialized: set[str] = set()
        self._old_values: set[str] = set()
        self._added_stores: dict[str, Store] = {}
        self._moved: dict[tuple[str, str], str] = {}
        # Splits whose branches nobody has got yet.
        self.open_splits: set[str] = set()

    def add(self, node: AnyNode) -> None:
        check_node(node)
        self.names.take(node.name, "node")
        for store in stores_of(node):
            # A cogroup's aggregations and their merge share one store: the same object, not the same name.
            if not any(store is kept for other in self._nodes.values() for kept in stores_of(other)):
                self.names.take(store.name, "store")
        self._nodes[node.name] = node

    def node(self, name: str) -> AnyNode:
        return self._nodes[name]

    def source_of(self, topic: str) -> AnyNode | None:
        """The node that reads a topic already."""
        for node in self._nodes.values():
            if topic in topics_read(node) or (isinstance(node, StreamSource) and matches(node, topic)):
                return node
        return None

    def read_by(self, source: StreamSource) -> Iterator[tuple[str, AnyNode]]:
        """The topics of a source that another node reads already, and that node; patterns by what is known so far."""
        for topic in source.topics:
            found = self.source_of(topic)
            if found is not None:
                yield topic, found
        if source.pattern is None:
            return
        for node in self._nodes.values():
            if isinstance(node, StreamSource) and node.pattern == source.pattern:
                yield source.pattern.pattern, node
            for topic in topics_read(node):
                if matches(source, topic):
                    yield topic, node

    def add_store(self, store: Store) -> None:
        self.names.take(store.name, "store")
        self._added_stores[store.name] = store

    def store_named(self, name: str) -> Store:
        found = self._added_stores.get(name)
        if found is None:
            known = {store.name: store for node in self._nodes.values() for store in stores_of(node)}
            if name not in known:
                hint = nearest(name, [*self._added_stores, *known])
                raise TopologyError(f"there is no store {name!r}{hint}: add it with add_state_store")
            return known[name]
        return found

    # -- serdes and types

    def key_serde(self, flow: Flow, given: Any = None) -> Serde:
        return fitting(given, flow.schema.key, "key") if given is not None else flow.key_serde or self.default_key

    def value_serde(self, flow: Flow, given: Any = None) -> Serde:
        if given is not None:
            return fitting(given, flow.schema.value, "value")
        return flow.value_serde or self.default_value

    def result(self, function: object, scope: Scope, given: Any = None) -> tuple[Serde | None, DataType]:
        """The serde and the type of what a function returns: as declared, as a column's type or an annotation says."""
        kind: DataType = ANY
        if isinstance(function, Expression):
            kind = compile_expression(function, scope).type
        elif given is None:
            kind = returned_type(function)
        if given is not None:
            serde = fitting(given, kind, str(function))
            return serde, kind if kind != ANY else serde.type
        return (None if kind in (ANY, NULL) else serde_of(kind)), kind

    # -- partitions

    def own(self, other: Draft, what: str) -> None:
        """Refuse what is of another builder: its names mean other things there."""
        if other is not self:
            raise TopologyError(f"{what}: both sides must come from the same builder")

    def _in_windows(self, flow: Flow) -> bool | None:
        """Whether keys are of windows; a serde that is not ours does not say."""
        serde = self.key_serde(flow)
        if flow.schema.windowed or isinstance(serde, TimeWindowedSerde | SessionWindowedSerde):
            return True
        return False if isinstance(serde, StringSerde | NumberSerde | BytesSerde) else None

    def copartition(self, one: Flow, other: Flow, what: str) -> None:
        """Refuse a join whose sides are known to have different keys or numbers of partitions."""
        if {self._in_windows(one), self._in_windows(other)} == {True, False}:
            raise TopologyError(f"{what}: keys in windows never equal keys that are not: select another key")
        if ANY not in (one.schema.key, other.schema.key) and one.schema.key != other.schema.key:
            raise TopologyError(f"{what}: keys of type {one.schema.key} never equal keys of type {other.schema.key}")
        known = [
            (node, count)
            for name in (*one.sources, *other.sources)
            if (count := getattr(node := self._nodes[name], "partitions", None)) is not None
        ]
        for node, count in known[1:]:
            first, first_count = known[0]
            if count != first_count:
                raise NotCopartitioned(
                    f"{what}: {_topic(first)} has {first_count} partitions and {_topic(node)} has {count}, so equal "
                    f"keys would not meet. Put .repartition(partitions={first_count}) before the join, on the side of "
                    f"{_topic(node)}, or use a global table."
                )

    def repartition(
        self,
        flow: Flow,
        topic_prefix: str,
        *,
        key: Any = None,
        value: Any = None,
        partitions: int | None = None,
        reuse: bool = False,
    ) -> Flow:
        """The stream behind an internal topic. With `reuse` the same stream under the same name is moved once."""
        suffix = "-repartition"
        topic = topic_prefix if topic_prefix.endswith(suffix) else topic_prefix + suffix
        prefixes = ("KSTREAM-SINK-", "KSTREAM-FILTER-", "KSTREAM-SOURCE-")
        sink, null_filter, source = (self.names.node(prefix) for prefix in prefixes)
        if not GENERATED_REPARTITION.fullmatch(topic_prefix):
            sink, null_filter, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
        key_serde, value_serde = self.key_serde(flow, key), self.value_serde(flow, value)
        again = self._moved.get((flow.node, topic))
        if again is not None and reuse:
            return replace(
                flow, node=again, key_serde=key_serde, value_serde=value_serde, sources=(again,), key_changed=False
            )
        self.names.take(topic, "internal topic")
        if reuse:
            self._moved[flow.node, topic] = source
        node = Repartition(
            name=source,
            inputs=(flow.node,),
            schema=flow.schema,
            topic=topic,
            sink=sink,
            filter=null_filter,
            key_serde=key_serde,
            value_serde=value_serde,
            partitions=partitions,
        )
        self.add(node)
        return replace(
            flow, node=source, key_serde=key_serde, value_serde=value_serde, sources=(source,), key_changed=False
        )

    # -- tables

    def table_store(self, node: str) -> KeyValueStore | None:
        """The store that a table is held in, if it has one."""
        found: KeyValueStore | None = getattr(self._nodes[node], "store", None)
        return found

    def is_materialized(self, name: str) -> bool:
        node = self._nodes[name]
        return name in self._materialized or getattr(node, "materialized", False)

    def needs_values(self, name: str) -> None:
        """Somebody looks values of this table up: it, or what it is computed from, must be in a store."""
        node = self._nodes[name]
        match node:
            case TableSource() | ToTable() | ForeignKeyJoin():
                self._materialize(name)
            case TableFilter(store=None) | TableMapValues(store=None) | TableJoin(store=None) | Suppress():
                for each in node.inputs:
                    self.needs_values(each)

    def _materialize(self, name: str) -> None:
        if not self.is_materialized(name):
            store = self.table_store(name)
            assert store is not None
            self.names.take(store.name, "store")
            self._materialized.add(name)

    def enable_old_values(self, name: str, *, force: bool = True) -> bool:
        """Make a table send what each change replaces; without `force` only where that needs no new store."""
        node = self._nodes[name]
        if name in self._old_values or getattr(node, "sends_old_values", False):
            return True
        match node:
            case TableSource() | ToTable() | ForeignKeyJoin():
                if not force and not self.is_materialized(name):
                    return False
                self._materialize(name)
            case TableFilter(store=None) | TableMapValues(store=None):
                if not self.enable_old_values(node.inputs[0], force=force):
                    return False
            case Suppress():
                return self.enable_old_values(node.inputs[0], force=force)
            case TableJoin() | TableMerge():
                for each in node.inputs:
                    self.enable_old_values(each, force=True)
        self._old_values.add(name)
        return True

    # -- the end

    def plan(self) -> Plan:
        """What has been drafted so far, as a plan."""
        if not any(isinstance(node, StreamSource | TableSource) for node in self._nodes.values()):
            raise TopologyError("the topology has no source: nothing would ever happen")
        for name in sorted(self.open_splits):
            raise TopologyError(f"nobody gets the branches of {name}: end it with default_branch or no_default_branch")
        for node in self._nodes.values():
            if isinstance(node, Process):
                for name in node.stores:
                    self.store_named(name)
        drafted = Plan(tuple(map(self._final, self._nodes.values())), tuple(self._added_stores.values()))
        nodes = (_without_filter(node, drafted) for node in drafted.nodes)
        return Plan(tuple(nodes), drafted.added_stores)

    def _final(self, node: AnyNode) -> AnyNode:
        if isinstance(node, TableSource | ToTable | ForeignKeyJoin) and node.name in self._materialized:
            node = replace(node, materialized=True)
        if isinstance(node, TableNode) and node.name in self._old_values:
            node = replace(node, sends_old_values=True)
        return node


def _without_filter(node: AnyNode, plan: Plan) -> AnyNode:
    """A repartitioning keeps records without key if all that it feeds are joins that want them."""
    behind = plan.consumers[node.name]
    if isinstance(node, Repartition) and behind and all(map(_takes_null_keys, behind)):
        return replace(node, drops_null_keys=False)
    return node


def _takes_null_keys(node: AnyNode) -> bool:
    return isinstance(node, StreamJoin | StreamTableJoin | StreamGlobalJoin) and node.kind != "inner"


def _topic(node: AnyNode) -> str:
    match node:
        case StreamSource(pattern=pattern) if pattern is not None:
            return f"what matches {pattern.pattern!r}"
        case StreamSource(topics=topics):
            return f"topic {topics[0]!r}"
        case TableSource(topic=topic) | Repartition(topic=topic):
            return f"topic {topic!r}"
    return node.name
