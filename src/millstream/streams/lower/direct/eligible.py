"""Which sub-topologies the driver may run itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from millstream.streams.plan.nodes import Aggregate
from millstream.streams.serdes import BytesSerde, NumberSerde, StringSerde, TimeWindowedSerde

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.plan.plan import Plan


# What the interpreter and Spark read and write alike, byte for byte. Of JSON Spark looks only at the fields that are
# asked for, and takes a missing one as null where a dataclass has a default or refuses: a result must not depend on how
# many records came at once.
_PLAIN: Final = (BytesSerde, NumberSerde, StringSerde)


def runs_directly(plan: Plan, part: SubTopology) -> bool:
    """Of those that run in Spark's own operators: where all state is that of aggregations, which both can hand over.

    A table that is read from a topic is as large as it is, and stays with Spark.
    """
    nodes = [node for node in plan.nodes if node.name in part.nodes]
    aggregated = {node.store.name for node in nodes if isinstance(node, Aggregate)}
    if part.table_stores or {store.name for store in part.logged} != aggregated:
        return False
    return all(_is_plain(serde) for node in nodes for serde in _serdes(node))


def _serdes(node: Any) -> Iterator[Any]:
    """Those of a node that reads or writes topics, and those of its store."""
    for holder in (node, getattr(node, "store", None)):
        for name in ("key_serde", "value_serde"):
            serde = getattr(holder, name, None)
            if serde is not None:
                yield serde


def _is_plain(serde: Any) -> bool:
    return isinstance(serde.inner if isinstance(serde, TimeWindowedSerde) else serde, _PLAIN)
