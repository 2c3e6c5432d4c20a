"""A plan as Kafka Streams would lay it out: sources, processors and sinks, cut into sub-topologies at topics.

One operator of the plan may be several processors here. A sub-topology is what is connected without a topic between:
by edges, or by a store that two processors use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.streams.plan.nodes import (
    Aggregate,
    AnyNode,
    ForeignKeyJoin,
    GlobalTableSource,
    Process,
    Repartition,
    Sink,
    StreamGlobalJoin,
    StreamJoin,
    StreamSource,
    StreamTableJoin,
    Suppress,
    TableAggregate,
    TableFilter,
    TableGroup,
    TableJoin,
    TableMapValues,
    TableMerge,
    TableSource,
    ToTable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.streams.plan.plan import Plan


@dataclass(frozen=True)
class Source:
    """Reads topics; `internal` if the application owns them."""

    name: str
    topics: tuple[str, ...]
    internal: bool = False
    inputs: tuple[str, ...] = ()
    # What the topics have to match; which they are is known where it runs.
    pattern: str | None = None


@dataclass(frozen=True)
class Processor:
    """Does something, perhaps with stores."""

    name: str
    inputs: tuple[str, ...]
    stores: tuple[str, ...] = ()


@dataclass(frozen=True)
class Writer:
    """Writes to a topic; None if a function chooses it."""

    name: str
    inputs: tuple[str, ...]
    topic: str | None
    internal: bool = False


Part = Source | Processor | Writer


@dataclass(frozen=True)
class GlobalTable:
    """A source and the processor that keeps a global table; they belong to no task."""

    source: Source
    processor: Processor


@dataclass(frozen=True)
class Layout:
    """All parts by sub-topology: the number of each, and what is in it."""

    groups: tuple[tuple[Part, ...] | GlobalTable, ...]


@dataclass(frozen=True)
class InternalTopic:
    """A topic that the application owns. Without `partitions` it gets as many as the topics that feed it have."""

    name: str
    cleanup_policy: str
    partitions: int | None
    retention_ms: int | None = None


def parts_of(plan: Plan) -> list[Part]:
    """Every part that runs in tasks, in the order of the plan."""
    # Groups of one table share the processor that finds their keys.
    return list(dict.fromkeys(part for node in plan.nodes for part in parts_of_node(plan, node)))


def value_stores(plan: Plan, name: str) -> tuple[str, ...]:
    """The stores from which a table's values are looked up."""
    node = plan.by_name[name]
    match node:
        case TableFilter(store=None) | TableMapValues(store=None) | TableJoin(store=None):
            return tuple(dict.fromkeys(store for each in node.inputs for store in value_stores(plan, each)))
        case Suppress(store_name=store_name):
            return (*value_stores(plan, node.inputs[0]), store_name)
        case TableSource() | ToTable() | ForeignKeyJoin():
            return (node.store.name,) if node.materialized else ()
        case Aggregate() | TableAggregate() | TableMerge() | TableFilter() | TableMapValues() | TableJoin():
            assert node.store is not None
            return (node.store.name,)
    return ()


def parts_of_node(plan: Plan, node: AnyNode) -> Iterator[Part]:
    """What one operator is made of; nothing for a global table, which runs in no task."""
    fed = node.inputs
    match node:
        case StreamSource() | TableSource() | GlobalTableSource():
            yield from _source(node)
        case Repartition() | TableGroup() | Sink():
            yield from _writing(node, fed)
        case StreamTableJoin():
            yield Processor(node.name, fed[:1], value_stores(plan, node.inputs[1]))
        case StreamGlobalJoin():
            yield Processor(node.name, fed[:1])
        case StreamJoin():
            yield from _stream_join(node, fed)
        case TableJoin():
            this, other = node.inputs
            yield Processor(node.this_join, fed[:1], value_stores(plan, other))
            yield Processor(node.other_join, fed[1:], value_stores(plan, this))
            yield Processor(node.name, (node.this_join, node.other_join), _own(node))
        case ForeignKeyJoin():
            yield from _foreign_key_join(plan, node, fed)
        case _:
            yield Processor(node.name, fed, _own(node))


def _source(node: StreamSource | TableSource | GlobalTableSource) -> Iterator[Part]:
    if isinstance(node, StreamSource):
        yield Source(node.name, node.topics, pattern=None if node.pattern is None else node.pattern.pattern)
    elif isinstance(node, TableSource):
        yield Source(node.source, (node.topic,))
        yield Processor(node.name, (node.source,), _own(node))


def _writing(node: Repartition | TableGroup | Sink, fed: tuple[str, ...]) -> Iterator[Part]:
    match node:
        case Repartition():
            yield Processor(node.filter, fed)
            yield Writer(node.sink, (node.filter,), node.topic, internal=True)
            yield Source(node.name, (node.topic,), internal=True)
        case TableGroup():
            yield Processor(node.select, fed)
            yield Writer(node.sink, (node.select,), node.topic, internal=True)
            yield Source(node.name, (node.topic,), internal=True)
        case Sink():
            yield Writer(node.name, fed, node.topic if isinstance(node.topic, str) else None)


def _own(node: AnyNode) -> tuple[str, ...]:
    """The stores that a node's last processor uses."""
    match node:
        case Process(stores=stores):
            return stores
        case Suppress(store_name=store_name):
            return (store_name,)
        case TableMerge():
            return ()
        case TableSource() | ToTable() | ForeignKeyJoin():
            return (node.store.name,) if node.materialized else ()
    store = getattr(node, "store", None)
    return () if store is None else (store.name,)


def _stream_join(node: StreamJoin, fed: tuple[str, ...]) -> Iterator[Part]:
    shared = () if node.outer_store is None else (node.outer_store.name,)
    yield Processor(node.this_windowed, fed[:1], (node.this_store.name,))
    yield Processor(node.other_windowed, fed[-1:], (node.other_store.name,))
    yield Processor(node.this_join, (node.this_windowed,), (node.other_store.name, *shared))
    yield Processor(node.other_join, (node.other_windowed,), (node.this_store.name, *shared))
    yield Processor(node.name, (node.this_join, node.other_join))


def _foreign_key_join(plan: Plan, node: ForeignKeyJoin, fed: tuple[str, ...]) -> Iterator[Part]:
    part = node.part
    this, other = node.inputs
    yield Processor(part("send"), fed[:1])
    yield Writer(part("subscription sink"), (part("send"),), part("subscription topic"), internal=True)
    yield Source(part("subscription source"), (part("subscription topic"),), internal=True)
    yield Processor(part("receive"), (part("subscription source"),), (part("store"),))
    yield Processor(part("join"), (part("receive"),), value_stores(plan, other))
    yield Processor(part("foreign join"), fed[1:], (part("store"),))
    yield Writer(part("response sink"), (part("join"), part("foreign join")), part("response topic"), internal=True)
    yield Source(part("response source"), (part("response topic"),), internal=True)
    yield Processor(part("resolver"), (part("response source"),), value_stores(plan, this))
    yield Processor(node.name, (part("resolver"),), _own(node))


def layout(plan: Plan) -> Layout:
    """The sub-topologies, numbered as Kafka Streams does: by the names of their sources."""
    parts = parts_of(plan)
    root = {part.name: part.name for part in parts}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    by_store: dict[str, str] = {}
    for part in parts:
        for other in part.inputs:
            root[find(part.name)] = find(other)
        for store in getattr(part, "stores", ()):
            root[find(part.name)] = find(by_store.setdefault(store, part.name))
    tables = [
        GlobalTable(Source(node.source, (node.topic,)), Processor(node.name, (node.source,), (node.store.name,)))
        for node in plan.nodes
        if isinstance(node, GlobalTableSource)
    ]
    sources: dict[str, str | GlobalTable] = {part.name: find(part.name) for part in parts if isinstance(part, Source)}
    sources.update({table.source.name: table for table in tables})
    groups: dict[str | GlobalTable, tuple[Part, ...] | GlobalTable] = {}
    for name in sorted(sources):
        group = sources[name]
        if isinstance(group, GlobalTable):
            groups[group] = group
        elif group not in groups:
            groups[group] = tuple(part for part in parts if find(part.name) == group)
    return Layout(tuple(groups.values()))


def internal_topics(plan: Plan, application_id: str) -> list[InternalTopic]:
    """Repartition topics, subscriptions of foreign-key joins and changelogs."""
    counts = {node.topic: node.partitions for node in plan.nodes if isinstance(node, Repartition)}
    found = [
        InternalTopic(f"{application_id}-{topic}", "delete", counts.get(topic), -1)
        for part in parts_of(plan)
        if isinstance(part, Source) and part.internal
        for topic in part.topics
    ]
    suppressed = [node.store_name for node in plan.nodes if isinstance(node, Suppress)]
    for store in plan.stores.values():
        if store.logged:
            name = f"{application_id}-{store.name}-changelog"
            found.append(InternalTopic(name, store.cleanup_policy, None, store.changelog_retention_ms))
    found += [InternalTopic(f"{application_id}-{name}-changelog", "compact", None) for name in suppressed]
    return found
