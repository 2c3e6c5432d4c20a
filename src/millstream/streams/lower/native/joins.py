"""Streams joined with tables: each record with the value that the table has at that moment.

A table is held as a base, sorted by key, and what has changed since, newest value per key. A micro-batch adds its own
changes to the latter, each with its time, and a record of the stream takes the last change that is not younger than
itself, or else what the base says. So within a micro-batch the order is that of time, and over micro-batches that in
which they came. Spark merges sorted rows: only the stream's records have to be moved and sorted, the base lies ready.
They are sorted by a hash first: Spark compares eight bytes of the first column before anything else, and those of a
partition's number, or of keys that begin alike, tell nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.streams.lower.native.serdes import spark_type
from millstream.streams.lower.native.snapshots import cut_off, forget, sorted_by
from millstream.streams.lower.native.stateless import column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millstream.streams.lower.native.flows import Flow
    from millstream.streams.plan.nodes import StreamTableJoin

PLACE = ("place_hash", "partition", "key")
BEFORE_MS = -1
# Changes are folded into the base when there are more of them than this, and than so large a part of it.
FOLD_ROWS = 50_000
FOLD_PART = 0.25


class HeldTable:
    """A table's rows. `add` may be called again for the same changes after `hold`."""

    def __init__(self) -> None:
        self._base: DataFrame | None = None
        self._changed: DataFrame | None = None
        self._next: DataFrame | None = None
        self._base_rows = 0
        self._changed_rows = 0
        self._next_rows = 0

    def hold(self, rows: DataFrame | None, count: int) -> None:
        """Start from these: partition, key and value, one row for each key; `count` is about how many they are."""
        self._changed, self._next, self._base = None, None, None
        self._base_rows, self._changed_rows, self._next_rows = count, 0, 0
        if rows is not None:
            self._base = sorted_by(_placed(rows).select(*PLACE, "value"), list(PLACE))

    def committed(self) -> None:
        """What the last try added is what is held from now on."""
        if self._next is None:
            return
        forget(self._changed)
        self._changed, self._next = self._next, None
        self._changed_rows = self._next_rows
        if self._changed_rows > max(FOLD_ROWS, FOLD_PART * self._base_rows):
            self._fold()

    def _fold(self) -> None:
        assert self._changed is not None
        before, changed = self._base, self._changed
        newest = changed.select(*PLACE, "newest.value")
        if before is not None:
            kept = before.join(changed.select(*PLACE), list(PLACE), "left_anti")
            newest = kept.select(*PLACE, "value").unionByName(newest)
        self._base = sorted_by(newest.where("value is not null"), list(PLACE))
        # Computed now: what it is made from is let go.
        self._base_rows = self._base.count()
        forget(before)
        forget(changed)
        self._changed, self._changed_rows = None, 0

    def add(self, changes: DataFrame, count: int) -> None:
        """A micro-batch's changes: key, value, timestamp, partition and offset; `count` is how many at most."""
        from pyspark.sql import functions as f

        new = _placed(changes).select(
            *PLACE,
            f.struct(f.col("timestamp").alias("at_ms"), "offset", "value").alias("change"),
            f.struct("offset", "value").alias("newest"),
        )
        if self._changed is not None:
            held = self._changed.select(
                *PLACE,
                f.struct(
                    f.lit(BEFORE_MS).cast("bigint").alias("at_ms"),
                    f.col("newest.offset").alias("offset"),
                    f.col("newest.value").alias("value"),
                ).alias("change"),
                "newest",
            )
            new = held.unionByName(new)
        self._next = cut_off(
            new.groupBy(*PLACE).agg(
                f.array_sort(f.collect_list("change"), _by_time).alias("changes"),
                f.max_by("newest", "newest.offset").alias("newest"),
            )
        )
        self._next_rows = self._changed_rows + count

    def beside(self, rows: DataFrame) -> DataFrame:
        """The stream's rows with `right`, the table's value at their time; null where it has none."""
        from pyspark.sql import functions as f

        assert self._next is not None, "the micro-batch's changes come first"
        joined = _placed(rows)
        right: Column = f.lit(None)
        if self._base is not None:
            base = self._base.select(*PLACE, f.col("value").alias("base_value"))
            joined = joined.join(base.hint("merge"), list(PLACE), "left")
            right = f.col("base_value")
        recent = self._next.select(*PLACE, "changes")
        joined = joined.join(recent.hint("merge"), list(PLACE), "left")
        seen = f.expr("filter(changes, each -> each.at_ms <= timestamp)")
        right = f.when(f.size(seen) > 0, f.element_at(seen, -1)["value"]).otherwise(right)
        return joined.withColumn("right", right).drop("base_value", "changes", "place_hash")


def _placed(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.withColumn("place_hash", f.xxhash64("partition", "key"))


def _by_time(one: Column, other: Column) -> Column:
    """The order of changes within a micro-batch: by time, then as they came."""
    from pyspark.sql import functions as f

    def before(field: str) -> Column:
        return one[field] < other[field]

    same = one["at_ms"] == other["at_ms"]
    return f.when(before("at_ms") | (same & before("offset")), -1).otherwise(1)


def joined_with_table(node: StreamTableJoin, stream: Flow, table: HeldTable) -> Flow:
    """Records without value are dropped, and in an inner join those without key or partner."""
    from pyspark.sql import functions as f

    inner = node.kind == "inner"
    rows = stream.rows.where(f.col("value").isNotNull())
    if inner:
        rows = rows.where(f.col("key").isNotNull())
    rows = table.beside(rows)
    if inner:
        rows = rows.where(f.col("right").isNotNull())
    value = column(node.joiner, stream).cast(spark_type(node.schema.value))  # type: ignore[arg-type]
    return replace(stream, raw_value=False).with_rows(rows.withColumn("value", value).drop("right"))
