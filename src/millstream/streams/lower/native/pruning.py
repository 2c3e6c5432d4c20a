"""Which columns of the records a sub-topology needs: what it does not is not copied out of the log.

A count in windows, for instance, looks neither at values nor at headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millstream.streams.expressions.tree import Call, Cast, Expression, Field, Source
from millstream.streams.lower.native.json_source import KINDS
from millstream.streams.lower.native.serdes import spark_type
from millstream.streams.lower.native.supported import expressions_of, parts_of
from millstream.streams.plan import nodes as n
from millstream.streams.serdes import JsonSerde
from millstream.streams.types import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

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


def json_fields(plan: Plan, part: SubTopology) -> tuple[tuple[str, str], ...]:
    """The fields of JSON values, with Spark's types, that operators look at, where the source can take them apart:
    there is one topic, and only plain fields are looked at. Otherwise none."""
    sources = [node for node in plan.nodes if node.name in part.nodes and isinstance(node, n.StreamSource)]
    if len(part.topics) != 1 or len(sources) != 1 or not isinstance(sources[0].value_serde, JsonSerde):
        return ()
    kind = sources[0].value_serde.type
    known = dict(kind.fields) if isinstance(kind, Struct) else {}
    wanted: dict[str, None] = {}
    whole = {sources[0].name}
    for node in plan.nodes:
        if node.name not in part.nodes or not any(name in whole for name in node.inputs):
            continue
        if not isinstance(node, _PASSES_ON | n.Aggregate | n.Map | n.MapValues | n.FlatMapValues):
            return ()
        for expression in expressions_of(node):
            wanted.update(dict.fromkeys(_fields_in(expression) if isinstance(expression, Expression) else [""]))
        if isinstance(node, _PASSES_ON):
            whole.add(node.name)
    if not all(known.get(name) in KINDS for name in wanted):
        return ()
    return tuple((name, spark_type(known[name])) for name in wanted)


def _fields_in(expression: Expression) -> Iterator[str]:
    """The fields of the value that an expression looks at; an empty name where it is the value itself."""
    match expression:
        case Field(Source("value"), str() as name):
            yield name
        case Source("value"):
            yield ""
        case Field(of, _) | Cast(of, _):
            yield from _fields_in(of)
        case Call(_, arguments):
            for argument in arguments:
                yield from _fields_in(argument)


def schema_of(columns: Collection[str], fields: tuple[tuple[str, str], ...] = ()) -> str:
    """As the source takes it; with fields the value is a struct of them."""
    struct = "struct<" + ",".join(f"`{name}`:{kind}" for name, kind in fields) + ">"
    return ", ".join(f"{name} {struct if fields and name == 'value' else TYPES[name]}" for name in columns)
