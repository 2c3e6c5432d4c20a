"""Which sub-topologies the driver may run itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.streams.plan.nodes import Aggregate

if TYPE_CHECKING:
    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.plan.plan import Plan


def runs_directly(plan: Plan, part: SubTopology) -> bool:
    """Of those that run in Spark's own operators: where all state is that of aggregations, which both can hand over.

    A table that is read from a topic is as large as it is, and stays with Spark.
    """
    aggregated = {node.store.name for node in plan.nodes if node.name in part.nodes and isinstance(node, Aggregate)}
    return not part.table_stores and {store.name for store in part.logged} == aggregated
