"""Interactive queries: a local copy of a table that follows the table's topic, and answers from memory.

    with follow_table("localhost:9092", "counts", key=str, value=int) as counts:
        counts.wait_until_current()
        counts.get("mill")

    with follow_store("localhost:9092", topology, "views", application_id="shop") as views:
        views.fetch("ada", from_ms, to_ms)

The topic is the durable store, so the copy needs no state of its own: it reads the topic from its start and goes on.
It follows any table topic of any cluster, a changelog of Kafka Streams' included; no Spark and no Java is involved.
copies.py the copies, following.py how they follow, http.py the same questions over HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.plan.names import nearest
from millstream.streams.plan.nodes import GlobalTableSource, TableSource
from millstream.streams.plan.stores import KeyValueStore, WindowStore
from millstream.streams.queries.copies import KeyValueCopy, SessionCopy, WindowCopy
from millstream.streams.queries.following import KeyValueView, SessionView, ViewClosed, WindowView
from millstream.streams.queries.http import StoreServer
from millstream.streams.serdes import SessionWindowedSerde, TimeWindowedSerde, serde_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.streams.plan.stores import Store
    from millstream.streams.queries.copies import Copy
    from millstream.streams.topology import Topology

__all__ = [
    "KeyValueView",
    "SessionView",
    "StoreServer",
    "ViewClosed",
    "WindowView",
    "copy_of",
    "follow_store",
    "follow_table",
]

# Kafka Streams numbers the entries of a window in its changelog, behind the window's start.
_SEQUENCE_BYTES = 4


def follow_table(
    options: str | Mapping[str, str],
    topic: str,
    *,
    key: Any = str,
    value: Any = dict,
    retention_ms: int | None = None,
) -> KeyValueView | WindowView | SessionView:
    """A copy of the table in a topic. With a windowed key serde it can be asked for windows; those that are older than
    the retention, counted back from the newest of their partition, are dropped."""
    key_serde, value_serde = serde_of(key), serde_of(value)
    copy: Copy = KeyValueCopy(key_serde, value_serde)
    if isinstance(key_serde, TimeWindowedSerde):
        copy = WindowCopy(key_serde.inner, value_serde, key_serde.size_ms, retention_ms=retention_ms)
    elif isinstance(key_serde, SessionWindowedSerde):
        copy = SessionCopy(key_serde.inner, value_serde, retention_ms=retention_ms)
    return _view(options, topic, copy)


def follow_store(
    options: str | Mapping[str, str],
    topology: Topology,
    name: str,
    *,
    application_id: str,
    retention_ms: int | None = None,
) -> KeyValueView | WindowView | SessionView:
    """A copy of a topology's store, from its changelog; a table that is read from a topic, from that topic.

    `retention_ms` where the application has another for its changelogs (`topic.retention.ms`); -1 is for ever.
    """
    stores = topology.plan.stores
    if name not in stores:
        raise KeyError(f"there is no store {name!r}{nearest(name, list(stores))}")
    store = stores[name]
    topic = f"{application_id}-{name}-changelog"
    for node in topology.plan.nodes:
        if isinstance(node, TableSource | GlobalTableSource) and node.store.name == name:
            topic = node.topic
    return _view(options, topic, copy_of(store, retention_ms))


def copy_of(store: Store, retention_ms: int | None = None) -> Copy:
    """An empty copy for what is in a store's changelog, which keeps as much as that does."""
    if isinstance(store, KeyValueStore):
        return KeyValueCopy(store.key_serde, store.value_serde)
    if retention_ms is None:
        retention_ms = store.changelog_retention_ms
    kept_ms = None if retention_ms < 0 else retention_ms
    if isinstance(store, WindowStore):
        return WindowCopy(
            store.key_serde,
            store.value_serde,
            store.size_ms,
            suffix_bytes=_SEQUENCE_BYTES,
            retention_ms=kept_ms,
        )
    return SessionCopy(store.key_serde, store.value_serde, retention_ms=kept_ms)


def _view(options: str | Mapping[str, str], topic: str, copy: Copy) -> KeyValueView | WindowView | SessionView:
    if isinstance(copy, KeyValueCopy):
        return KeyValueView(options, topic, copy)
    return WindowView(options, topic, copy) if isinstance(copy, WindowCopy) else SessionView(options, topic, copy)
