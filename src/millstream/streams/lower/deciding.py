"""Which engine runs a sub-topology: Spark's own operators where all of it is columns that they know, else Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.streams.errors import TopologyError
from millstream.streams.lower.native.supported import why_not
from millstream.streams.lower.subtopologies import subtopologies
from millstream.streams.plan.nodes import Sink

if TYPE_CHECKING:
    from millstream.streams.plan.plan import Plan


def refuse_unknown(plan: Plan) -> None:
    """What neither engine does is said before anything runs."""
    for node in plan.nodes:
        if isinstance(node, Sink) and node.partitioner is not None:
            raise TopologyError(f"{node.name}: a partitioner does not run on Spark; the key decides, as by default")


def engines(plan: Plan) -> list[str]:
    """For each sub-topology which engine runs it, and why."""
    said = []
    for part in subtopologies(plan):
        reason = why_not(plan, part)
        said.append(f"{part.number}: spark" if reason is None else f"{part.number}: python, {reason}")
    return said
