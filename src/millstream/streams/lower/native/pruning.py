"""Which columns of the records a sub-topology needs: what it does not is not copied out of the log.

A count in windows, for instance, looks neither at values nor at headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millstream.streams.expressions.tree import Expression
from millstream.streams.lower.native.supported import expressions_of, parts_of
from millstream.streams.plan import nodes as n

if TYPE_CHECKING:
    from collections.abc import Collection

    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.plan.plan import Plan

TYPES: Final = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "key": "binary",
    "value": "binary",
    "timestamp": "timestamp",
    "headers": "array<struct<key:string,value:binary>>",
}
_PASSES_ON = n.Filter | n.SelectKey | n.Branch | n.BranchChild | n.Merge


def needed_columns(plan: Plan, part: SubTopology) -> tuple[str, ...]:
    """The columns that its operators, all of them native, look at."""
    needed = ["partition", "offset", "key", "timestamp"]
    # Nodes that still have the records of a source, not the rows of an aggregation.
    before: set[str] = set()
    for node in plan.nodes:
        if node.name not in part.nodes:
            continue
        fed = [name for name in node.inputs if name in before]
        if fed and _looks_at_values(node):
            needed.append("value")
        if fed and isinstance(node, n.Sink | n.Repartition | n.StreamTableJoin):
            needed.append("headers")
        if not isinstance(node, n.Aggregate | n.Sink):
            before.add(node.name)
    return tuple(name for name in TYPES if name in needed)


def users_of_records(plan: Plan, part: SubTopology) -> int:
    """How many times the records of sources are gone through: by writers, tables and aggregations."""
    before: set[str] = set()
    found = 0
    for node in plan.nodes:
        if node.name not in part.nodes:
            continue
        fed = [name for name in node.inputs if name in before]
        if isinstance(node, n.Sink | n.Aggregate | n.Repartition) or getattr(node, "store", None) is not None:
            found += len(fed)
        if not isinstance(node, n.Aggregate | n.Sink):
            before.add(node.name)
    return found


def _looks_at_values(node: n.AnyNode) -> bool:
    if isinstance(node, n.Aggregate) and node.windows is None:
        return True
    if not isinstance(node, _PASSES_ON | n.Aggregate):
        return True
    return any(
        "value" in parts_of(expression) for expression in expressions_of(node) if isinstance(expression, Expression)
    )


def schema_of(columns: Collection[str]) -> str:
    """As the source takes it."""
    return ", ".join(f"{name} {TYPES[name]}" for name in columns)
