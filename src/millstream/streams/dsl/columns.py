"""Aggregates of columns: what is kept, and the column that shows it.

A sum, a count, a minimum or a maximum is kept as it is shown. A mean is kept as a sum and a count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.errors import TopologyError
from millstream.streams.expressions import col, compile_expression, struct, when
from millstream.streams.plan.aggregations import ColumnAggregate, Columns
from millstream.streams.types import ANY, DOUBLE, LONG, NULL, NUMERIC, TIMESTAMP, DataType, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.streams.expressions import Scope
    from millstream.streams.expressions.tree import Expression


def count_of(column: Expression | None = None) -> ColumnAggregate:
    """How many records, or how many in which the column is not null."""
    return ColumnAggregate("count", column)


def sum_of(column: Expression) -> ColumnAggregate:
    return ColumnAggregate("sum", column)


def min_of(column: Expression) -> ColumnAggregate:
    return ColumnAggregate("min", column)


def max_of(column: Expression) -> ColumnAggregate:
    return ColumnAggregate("max", column)


def avg_of(column: Expression) -> ColumnAggregate:
    return ColumnAggregate("avg", column)


def named(kind: type, columns: Mapping[str, object], **options: Any) -> tuple[dict[str, Any], list[str | None]]:
    """Columns, and the options beside them: an option's name is free for a column too, and what is given tells them
    apart."""
    mine = {name: each for name, each in options.items() if isinstance(each, kind)}
    return {**mine, **columns}, [None if name in mine else each for name, each in options.items()]


def checked(wanted: dict[str, Any]) -> dict[str, ColumnAggregate]:
    """What `agg` was given, if all of it are aggregates."""
    if not wanted:
        raise TopologyError("agg without an aggregate")
    for name, call in wanted.items():
        if not isinstance(call, ColumnAggregate):
            raise TopologyError(f"agg({name}={call!r}): that is no aggregate such as sum_of(col({name!r}))")
    return wanted


def store_of_parts(store: str | None) -> str | None:
    """The named store holds what the table shows, as in Kafka Streams; sums and counts have one of their own."""
    return None if store is None else f"{store}-parts"


def plan_columns(wanted: dict[str, ColumnAggregate], scope: Scope) -> tuple[Columns, DataType, Expression | None]:
    """What to keep, its type, and the column over it that gives what was wanted, if that is not the same."""
    if set(wanted) == {""} and wanted[""].function != "avg":
        (call,) = wanted.values()
        return Columns((("", call),)), result_type(call, scope), None
    kept: dict[str, ColumnAggregate] = {}
    shown: dict[str, Expression] = {}
    for name, call in wanted.items():
        if call.function == "avg" and call.of is not None:
            prefix = f"{name}_" if name else ""
            # Changelogs hold these names, so they change only where somebody else has one of them.
            while {f"{prefix}sum", f"{prefix}count"} & (wanted.keys() | kept.keys()):
                prefix += "_"
            result_type(call, scope)
            kept[f"{prefix}sum"] = ColumnAggregate("sum", call.of)
            kept[f"{prefix}count"] = ColumnAggregate("count", call.of)
            total, count = col(f"{prefix}sum"), col(f"{prefix}count")
            shown[name] = when(count > 0, total / count)
        else:
            kept[name] = call
            shown[name] = col(name)
    kind = Struct({name: result_type(call, scope) for name, call in kept.items()})
    columns = Columns(tuple(kept.items()))
    if "" in shown:
        return columns, kind, shown[""]
    as_it_is = all(kept.get(name) is call for name, call in wanted.items())
    return columns, kind, None if as_it_is else struct(**shown)


def result_type(call: ColumnAggregate, scope: Scope) -> DataType:
    """As Spark SQL: a sum of ints is a bigint, a count too, a mean is a double."""
    kind = ANY if call.of is None else compile_expression(call.of, scope).type
    match call.function:
        case "count":
            return LONG
        case "sum" | "avg":
            if kind not in (*NUMERIC, TIMESTAMP, ANY, NULL):
                raise TypeError(f"{call}: a {kind} is no number")
            if call.function == "avg" or kind == DOUBLE:
                return DOUBLE
            return ANY if kind == ANY else LONG
        case "min" | "max":
            return kind
    raise TypeError(f"there is no aggregate {call.function!r}")
