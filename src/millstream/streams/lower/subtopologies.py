"""Sub-topologies of a plan: which nodes each has, which topics it reads, which stores it keeps.

A sub-topology is what Kafka Streams would run in one task for each partition: everything that is connected without a
topic between. Its number is that of the description.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.streams.plan.nodes import GlobalTableSource, Process, Sink, TableSource
from millstream.streams.plan.physical import GlobalTable, Processor, Source, Writer, layout, parts_of_node
from millstream.streams.plan.plan import stores_of

if TYPE_CHECKING:
    from millstream.streams.plan.nodes import AnyNode
    from millstream.streams.plan.physical import Part
    from millstream.streams.plan.plan import Plan
    from millstream.streams.plan.stores import Store


@dataclass(frozen=True)
class SubTopology:
    """What one query runs."""

    number: int
    nodes: frozenset[str]
    # As the plan calls them; internal ones have the application id in front.
    topics: tuple[str, ...]
    internal_topics: frozenset[str]
    # Internal topics that it writes.
    written: tuple[str, ...]
    # Stores with a changelog of their own.
    logged: tuple[Store, ...]
    # Topics that are a store's changelog themselves: tables that are read from them.
    table_stores: tuple[tuple[str, Store], ...]

    def full_name(self, topic: str, application_id: str) -> str:
        return f"{application_id}-{topic}" if topic in self.internal_topics else topic

    def changelog(self, store: Store, application_id: str) -> str:
        return f"{application_id}-{store.name}-changelog"


def subtopologies(plan: Plan) -> list[SubTopology]:
    """All of them, in the order of the description."""
    owners = [(node, {part.name for part in parts_of_node(plan, node)}) for node in plan.nodes]
    found = []
    for number, group in enumerate(layout(plan).groups):
        if isinstance(group, GlobalTable):
            continue
        names = {part.name for part in group}
        nodes = [node for node, parts in owners if parts & names]
        sources = [part for part in group if isinstance(part, Source)]
        stores = {store.name: store for node in nodes for store in _kept(node) if _used(store, group)}
        used = {name for node in nodes if isinstance(node, Process) for name in node.stores}
        stores.update({store.name: store for store in plan.added_stores if store.name in used})
        tables = [
            (node.topic, node.store) for node in nodes if isinstance(node, TableSource) and node.store.name in stores
        ]
        from_topics = {store.name for _, store in tables}
        found.append(
            SubTopology(
                number,
                frozenset(node.name for node in nodes),
                tuple(topic for source in sources for topic in source.topics),
                frozenset(topic for source in sources if source.internal for topic in source.topics),
                tuple(part.topic for part in group if isinstance(part, Writer) and part.internal and part.topic),
                tuple(store for store in stores.values() if store.logged and store.name not in from_topics),
                tuple(tables),
            )
        )
    return found


def _kept(node: AnyNode) -> list[Store]:
    """A node's stores, without those that the interpreter keeps in a form of its own (see tasks_topic)."""
    apart = {getattr(node, "subscription_store", None), getattr(getattr(node, "outer_store", None), "name", None)}
    return [store for store in stores_of(node) if store.name not in apart]


def _used(store: Store, group: tuple[Part, ...]) -> bool:
    """Whether one of the group's parts uses the store: a foreign-key join is in two groups, its stores in one."""
    return any(isinstance(part, Processor) and store.name in part.stores for part in group)


def only_topic(plan: Plan, part: SubTopology, application_id: str) -> str | None:
    """The topic that everything goes to which a sub-topology writes, if there is one."""
    if part.logged:
        return None
    named = [node.topic for node in plan.nodes if node.name in part.nodes and isinstance(node, Sink)]
    topics = {*named, *(f"{application_id}-{topic}" for topic in part.written)}
    (found, *others) = topics or (None,)
    return found if isinstance(found, str) and not others else None


def global_tables(plan: Plan) -> list[GlobalTableSource]:
    """Tables that every task has as a whole."""
    return [node for node in plan.nodes if isinstance(node, GlobalTableSource)]
