"""Which engine runs a sub-topology: Spark's own operators where all of it is columns that they know, else Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.streams.lower.native.supported import why_not
from millstream.streams.lower.subtopologies import subtopologies

if TYPE_CHECKING:
    from millstream.streams.plan.plan import Plan


def engines(plan: Plan) -> list[str]:
    """For each sub-topology which engine runs it, and why."""
    said = []
    for part in subtopologies(plan):
        reason = why_not(plan, part)
        said.append(f"{part.number}: spark" if reason is None else f"{part.number}: python, {reason}")
    return said
