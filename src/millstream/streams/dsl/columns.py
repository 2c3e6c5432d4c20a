"""Aggregates of columns: what is kept, and the column that shows it.

A sum, a count, a minimum or a maximum is kept as it is shown. A mean is kept as a sum and a count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.streams.expressions import col, compile_expression, struct, when
from millstream.streams.plan.aggregations import ColumnAggregate, Columns
from millstream.streams.types import ANY, DOUBLE, LONG, NULL, NUMERIC, DataType, Struct

if TYPE_CHECKING:
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
    return columns, kind, None if list(kept) == list(wanted) else struct(**shown)


def result_type(call: ColumnAggregate, scope: Scope) -> DataType:
    """As Spark SQL: a sum of ints is a bigint, a count too, a mean is a double."""
    kind = ANY if call.of is None else compile_expression(call.of, scope).type
    match call.function:
        case "count":
            return LONG
        case "sum" | "avg":
            if kind not in (*NUMERIC, ANY, NULL):
                raise TypeError(f"{call}: a {kind} is no number")
            if call.function == "avg" or kind == DOUBLE:
                return DOUBLE
            return ANY if kind == ANY else LONG
        case "min" | "max":
            return kind
    raise TypeError(f"there is no aggregate {call.function!r}")
