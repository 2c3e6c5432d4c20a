"""Counts, sums, minima and maxima of columns, per key or per key and window, as Spark adds them up.

A micro-batch is added up to one row for each partition, key and window; these are merged with the rows that are held.
Keys are kept by partition, as tasks keep them, so a changelog's record goes where the records came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.streams.expressions import to_sql
from millstream.streams.lower.native import windows as win
from millstream.streams.lower.native.serdes import spark_type, windowed
from millstream.streams.plan.aggregations import ColumnAggregate, Columns, Count
from millstream.streams.types import Struct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millstream.streams.plan.nodes import Aggregate
    from millstream.streams.windows import TimeWindows

TIME = "newest_ms"


@dataclass(frozen=True)
class Part:
    """One column of an aggregate: its name in the value, its type there, and what adds it up."""

    name: str
    kind: str
    call: ColumnAggregate

    def of_records(self) -> Column:
        from pyspark.sql import functions as f

        if self.call.of is None:
            return f.count(f.lit(1))
        column = f.expr(to_sql(self.call.of))
        match self.call.function:
            case "count":
                return f.count(column)
            case "sum":
                return f.sum(column.cast(self.kind))
            case "min":
                return f.min(column)
        return f.max(column)

    def of_rows(self, column: str) -> Column:
        from pyspark.sql import functions as f

        match self.call.function:
            case "count" | "sum":
                return f.sum(column)
            case "min":
                return f.min(column)
        return f.max(column)

    def of_two(self, one: Column, other: Column) -> Column:
        from pyspark.sql import functions as f

        match self.call.function:
            case "min":
                return f.least(one, other)
            case "max":
                return f.greatest(one, other)
        zero = f.lit(0).cast(self.kind)
        return f.when(one.isNotNull() | other.isNotNull(), f.coalesce(one, zero) + f.coalesce(other, zero))


def parts_of(node: Aggregate) -> list[Part]:
    """The columns of a node's aggregate."""
    kind = node.schema.value
    if isinstance(node.aggregation, Count):
        return [Part("", spark_type(kind), ColumnAggregate("count"))]
    assert isinstance(node.aggregation, Columns), "supported.py has seen to it"
    kinds = dict(kind.fields) if isinstance(kind, Struct) and not node.aggregation.scalar else {"": kind}
    return [Part(name, spark_type(kinds[name]), call) for name, call in node.aggregation.columns]


def value_of(parts: list[Part], letter: str = "a") -> Column:
    """The aggregate's value from its columns; with another letter the value before."""
    from pyspark.sql import functions as f

    if len(parts) == 1 and not parts[0].name:
        return f.col(f"{letter}0").cast(parts[0].kind)
    columns = [f.col(f"{letter}{index}").cast(part.kind).alias(part.name) for index, part in enumerate(parts)]
    return f.struct(*columns)


def _counts(part: Part) -> bool:
    return part.call.function == "count"


def columns_of(parts: list[Part]) -> list[Column]:
    """The columns from a value, as it is read back from a changelog."""
    from pyspark.sql import functions as f

    if len(parts) == 1 and not parts[0].name:
        return [f.col("value").alias("a0")]
    return [f.col("value")[part.name].alias(f"a{index}") for index, part in enumerate(parts)]


def grouping(node: Aggregate) -> list[str]:
    return ["partition", "key"] if node.windows is None else ["partition", "key", "start"]


def added_up(rows: DataFrame, node: Aggregate) -> DataFrame:
    """Records to a row for each group; in windows also the last window that they close, and their offsets."""
    from pyspark.sql import functions as f

    sums = [part.of_records().alias(f"a{index}") for index, part in enumerate(parts_of(node))]
    sums.append(f.max("timestamp").alias(TIME))
    if node.windows is None:
        return rows.groupBy(*grouping(node)).agg(*sums)
    sums += [f.min("offset").alias("first_offset"), f.max("offset").alias("last_offset")]
    return rows.groupBy(*grouping(node), "closes").agg(*sums)


def records_of(rows: DataFrame, node: Aggregate) -> DataFrame:
    """What takes part: no record without key, and without windows none without value, as in Kafka Streams."""
    from pyspark.sql import functions as f

    if node.windows is None:
        return rows.where(f.col("key").isNotNull() & f.col("value").isNotNull())
    return win.in_windows(rows.where(f.col("key").isNotNull()), windows_of(node))


def windows_of(node: Aggregate) -> TimeWindows:
    from millstream.streams.windows import TimeWindows

    assert isinstance(node.windows, TimeWindows), "supported.py has seen to it"
    return node.windows


def merged(held: DataFrame | None, new: DataFrame, node: Aggregate) -> DataFrame:
    """What is held after a micro-batch; `changed` tells what it has changed."""
    from pyspark.sql import functions as f

    parts = parts_of(node)
    columns = [*grouping(node), *[f"a{index}" for index in range(len(parts))], TIME]
    rows = new.select(*columns, f.lit(True).alias("changed"))  # noqa: FBT003  # a column
    if held is not None:
        rows = held.select(*columns, f.lit(False).alias("changed")).unionByName(rows)  # noqa: FBT003
    sums = [part.of_rows(f"a{index}").alias(f"a{index}") for index, part in enumerate(parts)]
    if node.sends_old_values:
        before = [f.max(f.when(~f.col("changed"), f.col(f"a{index}"))) for index in range(len(parts))]
        # A first aggregate replaces the initial one: no records, nothing added up.
        for index, (part, each) in enumerate(zip(parts, before, strict=True)):
            sums.append((f.coalesce(each, f.lit(0)) if _counts(part) else each).alias(f"b{index}"))
    return rows.groupBy(*grouping(node)).agg(*sums, f.max(TIME).alias(TIME), f.max("changed").alias("changed"))


def beside_base(changed: DataFrame, base: DataFrame, node: Aggregate) -> DataFrame:
    """What was added since the base, put together with the base's rows of the same groups."""
    from pyspark.sql import functions as f

    parts = parts_of(node)
    letters = ("a", "b") if node.sends_old_values else ("a",)
    names = [f"a{index}" for index in range(len(parts))]
    renamed = [f.col(name).alias(f"base_{name}") for name in names]
    held = base.select(*grouping(node), *renamed, f.col(TIME).alias("base_ms"))
    rows = changed.join(held.hint("merge"), grouping(node), "left")
    sums = [
        part.of_two(f.col(f"base_a{index}"), f.col(f"{letter}{index}")).alias(f"{letter}{index}")
        for letter in letters
        for index, part in enumerate(parts)
    ]
    return rows.select(*grouping(node), *sums, f.greatest(TIME, "base_ms").alias(TIME), "changed")


def still_open(held: DataFrame, node: Aggregate, observed_ms: dict[int, int]) -> DataFrame:
    """Without the windows that take nothing any more. Those that were open until now are kept for one batch more."""
    from pyspark.sql import functions as f

    if not observed_ms:
        return held
    windows = windows_of(node)
    closed = f.create_map(
        *[f.lit(each) for place, at in observed_ms.items() for each in (place, win.closed_before(at, windows))]
    )
    last = closed[f.col("partition")]
    kept = last.isNull() | (f.col("start") > last)
    return held.where(kept | f.col("changed") if "changed" in held.columns else kept)


def changes(held: DataFrame, node: Aggregate) -> DataFrame:
    """The rows that a micro-batch has changed, as a table's changes."""
    return as_changes(held.where("changed"), node, old=node.sends_old_values)


def as_changes(rows: DataFrame, node: Aggregate, *, old: bool) -> DataFrame:
    """Rows that are held, as a table's changes; with `old` each has the value that was there before."""
    from pyspark.sql import functions as f

    key = f.col("key")
    if node.windows is not None:
        key = windowed(key, f.col("start"), windows_of(node).size_ms)
    before = [value_of(parts_of(node), "b").alias("old")] if old else []
    return rows.select(
        key.alias("key"),
        value_of(parts_of(node)).alias("value"),
        *before,
        f.col(TIME).alias("timestamp"),
        f.lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"),
        "partition",
        f.lit(None).cast("bigint").alias("offset"),
    )
