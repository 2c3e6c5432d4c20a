"""A plan: all nodes of a topology, each behind its inputs, and the stores that users added.

It is data: it can be printed, compared and compiled more than once. The test driver interprets it, Spark runs it, and
both the DSL and SQL build it, through drafting.py.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

from millstream.streams.expressions.tree import Expression, same
from millstream.streams.plan.nodes import (
    AnyNode,
    ForeignKeyJoin,
    GlobalTableSource,
    Process,
    StreamJoin,
    StreamSource,
    TableSource,
    ToTable,
)
from millstream.streams.plan.stores import KeyValueStore

if TYPE_CHECKING:
    from millstream.streams.plan.stores import Store


@dataclass(frozen=True, eq=False)
class Plan:
    """The whole topology."""

    nodes: tuple[AnyNode, ...]
    added_stores: tuple[Store, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, AnyNode]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def consumers(self) -> dict[str, tuple[AnyNode, ...]]:
        """Who is fed by each node, in the order in which they were added."""
        found: dict[str, list[AnyNode]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found[name].append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def stores(self) -> dict[str, Store]:
        """Every store that exists when the topology runs, by name."""
        found = {store.name: store for node in self.nodes for store in stores_of(node)}
        used = {name for node in self.nodes if isinstance(node, Process) for name in node.stores}
        found.update({store.name: store for store in self.added_stores if store.name in used})
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and same(self.nodes, other.nodes) and self.added_stores == other.added_stores

    def __hash__(self) -> int:
        return hash(tuple(node.name for node in self.nodes))

    def __str__(self) -> str:
        return "\n".join(map(_said, self.nodes))


def stores_of(node: AnyNode) -> list[Store]:
    """The stores that a node keeps."""
    match node:
        case StreamJoin():
            kept: list[Store | None] = [node.this_store, node.other_store, node.outer_store]
            return [store for store in kept if store is not None]
        case ForeignKeyJoin():
            subscriptions = KeyValueStore(node.subscription_store, node.foreign_key_serde, node.primary_key_serde)
            return [subscriptions, node.store] if node.materialized else [subscriptions]
        case TableSource() | ToTable():
            return [node.store] if node.materialized else []
    store = getattr(node, "store", None)
    return [] if store is None else [store]


def topics_read(node: AnyNode) -> tuple[str, ...]:
    """The topics of others that a node reads, as far as they have names."""
    match node:
        case StreamSource(topics=topics):
            return topics
        case TableSource(topic=topic) | GlobalTableSource(topic=topic):
            return (topic,)
    return ()


def matches(source: StreamSource, topic: str) -> bool:
    """Whether a topic is one that a source reads by its pattern."""
    return source.pattern is not None and source.pattern.fullmatch(topic) is not None


_QUIET = {"name", "inputs", "schema", "sends_old_values", "with_key", "negated", "materialized", "drops_null_keys"}


def _said(node: AnyNode) -> str:
    """One line: the name, what it does to what, and the types behind it."""
    parts = []
    for field in fields(node):
        shown = getattr(node, field.name)
        if field.name in _QUIET or field.name.endswith("_serde"):
            continue
        if shown is None or shown is False or (isinstance(shown, tuple) and not shown):
            continue
        if callable(shown) and not isinstance(shown, Expression):
            shown = f"<{getattr(shown, '__name__', type(shown).__name__)}>"
        elif hasattr(shown, "retention_ms") or hasattr(shown, "timestamped"):
            shown = getattr(shown, "name", shown)
        parts.append(f"{field.name}={shown}")
    fed = f" <- {', '.join(node.inputs)}" if node.inputs else ""
    return f"{node.name}: {type(node).__name__}({', '.join(map(str, parts))}) [{node.schema}]{fed}"
