"""Operators on records one by one, as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.streams.expressions import to_sql
from millstream.streams.lower.native.serdes import spark_type
from millstream.streams.plan import nodes as n

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millstream.streams.expressions import Expression
    from millstream.streams.lower.native.flows import Flow


def column(expression: Expression, flow: Flow) -> Column:
    """An expression over a flow's records."""
    from pyspark.sql import functions as f

    return f.expr(to_sql(expression, windowed=flow.windowed))


def filtered(node: n.Filter, flow: Flow) -> Flow:
    """Null is neither true nor false, so both ways leave it out."""
    condition = column(node.predicate, flow)  # type: ignore[arg-type]  # supported.py has seen to it
    return flow.with_rows(flow.rows.where(~condition if node.negated else condition))


def mapped(node: n.Map | n.MapValues | n.SelectKey, flow: Flow) -> Flow:
    """New keys, new values, or both, of the types that the plan says."""
    from dataclasses import replace

    found = {}
    match node:
        case n.Map(mapper=(to_key, to_value)):
            found = {"key": column(to_key, flow), "value": column(to_value, flow)}
        case n.MapValues():
            found = {"value": column(node.mapper, flow)}  # type: ignore[arg-type]
        case n.SelectKey():
            found = {"key": column(node.selector, flow)}  # type: ignore[arg-type]
    kinds = {"key": node.schema.key, "value": node.schema.value}
    cast = {name: each.cast(spark_type(kinds[name])) for name, each in found.items()}
    if "key" in cast:
        flow = replace(flow, windowed=False)
    if "value" in cast:
        flow = replace(flow, raw_value=False)
    return flow.with_columns(**cast)


def flat_mapped_values(node: n.FlatMapValues, flow: Flow) -> Flow:
    """A record for each item of an array; none for null."""
    from pyspark.sql import functions as f

    items = column(node.mapper, flow)  # type: ignore[arg-type]
    rows = flow.rows.withColumn("value", f.explode(items))
    return flow.with_rows(rows.withColumn("value", f.col("value").cast(spark_type(node.schema.value))))


def branches(node: n.Branch, flow: Flow) -> dict[str, Flow]:
    """Each record to the first branch whose condition is true."""
    from pyspark.sql import functions as f

    found: dict[str, Flow] = {}
    left = f.lit(True)  # noqa: FBT003  # a column
    for name, predicate in node.branches:
        own = f.lit(True) if predicate is None else f.coalesce(column(predicate, flow), f.lit(False))  # type: ignore[arg-type]  # noqa: FBT003
        found[name] = flow.with_rows(flow.rows.where(left & own))
        left = left & ~own
    return found


def merged(flows: list[Flow]) -> Flow:
    """All records of several streams."""
    rows = flows[0].rows
    for other in flows[1:]:
        rows = rows.unionByName(other.rows)
    return flows[0].with_rows(rows)


def table_mapped(node: n.TableFilter | n.TableMapValues, flow: Flow) -> Flow:
    """Changes of a table: what a filter does not keep is deleted, and what is deleted stays so.

    Where a change carries the value that it replaces, nothing is sent for keys that the filter never let through.
    """
    from dataclasses import replace

    from pyspark.sql import functions as f

    value = _of_table(node, flow)
    rows = flow.rows
    if flow.old:
        rows = rows.withColumn("new", f.col("value")).withColumn("value", f.col("old"))
        old = rows.withColumn("old", value)
        rows = old.withColumn("value", f.col("new")).drop("new")
    rows = rows.withColumn("value", value)
    if flow.old and isinstance(node, n.TableFilter):
        rows = rows.where(f.col("value").isNotNull() | f.col("old").isNotNull())
    raw = flow.raw_value and isinstance(node, n.TableFilter)
    return replace(flow, rows=rows, raw_value=raw)


def _of_table(node: n.TableFilter | n.TableMapValues, flow: Flow) -> Column:
    from pyspark.sql import functions as f

    if isinstance(node, n.TableFilter):
        condition = column(node.predicate, flow)  # type: ignore[arg-type]
        return f.when(~condition if node.negated else condition, f.col("value"))
    mapper = column(node.mapper, flow)  # type: ignore[arg-type]
    return f.when(f.col("value").isNotNull(), mapper).cast(spark_type(node.schema.value))
