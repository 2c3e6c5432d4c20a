"""One aggregation over its micro-batches: what is held, what a try makes of it, and how far stream time has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.streams.lower.native import aggregates
from millstream.streams.lower.native import windows as win
from millstream.streams.lower.native.serdes import decode
from millstream.streams.lower.native.snapshots import cut_off, forget, read_topic, sorted_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from millstream.client.grouping import TopicPartition
    from millstream.streams.plan.nodes import Aggregate


# From so many rows on they are not all merged anew in each micro-batch.
LARGE_ROWS = 200_000
FOLD_ROWS = 50_000
FOLD_PART = 0.25


class Aggregating:
    """State of one aggregation. `add` may be called again for the same records after `restore`.

    A small state is merged with each micro-batch as a whole. A large one is a base, sorted by group, and what was added
    since; only groups of the micro-batch are put together from both, and now and then the latter is folded in.
    """

    def __init__(self, node: Aggregate) -> None:
        self.node = node
        self._base: DataFrame | None = None
        self._added: DataFrame | None = None
        self._next: DataFrame | None = None
        self._is_large = False
        self._base_rows = 0
        self._changed_rows = 0
        self.observed_ms: dict[int, int] = {}
        self._closed: dict[int, int] = {}

    def changed(self, count: int) -> None:
        """So many groups were changed by the micro-batch that was written last."""
        self._changed_rows += count

    def committed(self) -> None:
        """What the last try made is what is held from now on."""
        if self._next is None:
            return
        if not self._is_large:
            forget(self._base)
            self._base, self._next = self._next, None
            if self._base_rows + self._changed_rows > LARGE_ROWS:
                self._base_rows, self._changed_rows = self._base.count(), 0
                if self._base_rows > LARGE_ROWS:
                    self._settle(self._base)
            return
        forget(self._added)
        self._added, self._next = self._next, None
        if self._changed_rows > max(FOLD_ROWS, FOLD_PART * self._base_rows):
            folded = aggregates.merged(self._base, self._added, self.node)
            if self.node.windows is not None:
                folded = aggregates.still_open(folded.drop("changed"), self.node, self.observed_ms)
            self._settle(folded)

    def _settle(self, rows: DataFrame) -> None:
        """Make this the base of a large state."""
        base = sorted_by(rows.drop("changed"), aggregates.grouping(self.node))
        # Computed now: what it is made from is let go. If that fails, what was held is held as before.
        count = base.count()
        for each in (self._base, self._added):
            forget(each)
        self._base, self._added = base, None
        self._base_rows, self._changed_rows = count, 0
        self._is_large = count > LARGE_ROWS // 2

    def restore(
        self,
        spark: SparkSession,
        changelog: str,
        ends: Mapping[TopicPartition, int],
        options: Mapping[str, str],
        observed_ms: dict[int, int],
    ) -> None:
        """Hold what a changelog says."""
        has_any = any(end for (topic, _), end in ends.items() if topic == changelog)
        self.hold(read_topic(spark, changelog, ends, options) if has_any else None, observed_ms)

    def hold(self, records: DataFrame | None, observed_ms: dict[int, int]) -> None:
        """Hold what records of the changelog say, the last one of each key: partition, key, value and timestamp."""
        from pyspark.sql import functions as f

        self._next, self._base, self._added = None, None, None
        self._is_large, self._base_rows, self._changed_rows = False, 0, 0
        self.observed_ms, self._closed = observed_ms, {}
        if records is None:
            return
        rows = records.where(f.col("value").isNotNull())
        store, windows = self.node.store, self.node.windows
        plain, start = f.col("key"), []
        if windows is not None:
            plain = f.substring(f.col("key"), f.lit(1), f.length("key") - 12)
            digits = f.hex(f.substring(f.col("key"), f.length("key") - 11, f.lit(8)))
            start = [f.conv(digits, 16, -10).cast("bigint").alias("start")]
        rows = rows.select(
            "partition",
            decode(plain, store.key_serde).alias("key"),
            *start,
            decode(f.col("value"), store.value_serde).alias("value"),
            f.col("timestamp").alias(aggregates.TIME),
        )
        columns = aggregates.columns_of(aggregates.parts_of(self.node))
        rows = rows.select(*aggregates.grouping(self.node), *columns, aggregates.TIME)
        if windows is not None:
            rows = aggregates.still_open(rows, self.node, observed_ms)
        self._settle(rows)

    def rows_held(self) -> int:
        """How many rows there are; where that is not known of a small state, they are counted."""
        if self._base is not None and self._changed_rows and not self._is_large:
            self._base_rows, self._changed_rows = self._base.count(), 0
        return self._base_rows + self._changed_rows

    def held(self) -> DataFrame | None:
        """A small state's rows, as changes of the table; None if there are none."""
        assert not self._is_large, "it is not all in one place"
        return None if self._base is None else aggregates.as_changes(self._base, self.node, old=False)

    def let_go(self) -> None:
        """Somebody else holds it from now on."""
        forget(self._base)
        self.hold(None, {})

    def add(self, rows: DataFrame, persisted: list[DataFrame], *, few: bool) -> DataFrame:
        """The changes that a micro-batch brings; what is cached on the way is added to `persisted`. `few` says that it
        is a small one."""
        node = self.node
        records = aggregates.records_of(rows, node)
        new = aggregates.added_up(records, node)
        if node.windows is not None:
            new = self._in_time(records, new, persisted, few=few)
        if self._is_large:
            assert self._base is not None
            self._next = cut_off(aggregates.merged(self._added, new, node))
            changed = self._next.where("changed")
            return aggregates.changes(aggregates.beside_base(changed, self._base, node), node)
        held = aggregates.merged(self._base, new, node)
        if node.windows is not None and self._closes_windows():
            held = aggregates.still_open(held, node, self.observed_ms)
        self._next = cut_off(held)
        return aggregates.changes(self._next, node)

    def _closes_windows(self) -> bool:
        """Whether some have closed since it was last asked: otherwise there is nothing to leave out."""
        windows = aggregates.windows_of(self.node)
        closed = {place: win.closed_before(at_ms, windows) for place, at_ms in self.observed_ms.items()}
        before, self._closed = self._closed, closed
        return closed != before

    def _in_time(self, records: DataFrame, new: DataFrame, persisted: list[DataFrame], *, few: bool) -> DataFrame:
        """The sums without late records, and stream time after the micro-batch."""
        from pyspark.sql import functions as f

        windows = aggregates.windows_of(self.node)
        new = new.persist()
        persisted.append(new)
        places = ("partition", "start", "closes")
        groups = new.select(*places, "first_offset", "last_offset", aggregates.TIME)
        if not few:
            groups = groups.groupBy(*places).agg(
                f.min("first_offset").alias("first_offset"),
                f.max("last_offset").alias("last_offset"),
                f.max(aggregates.TIME).alias(aggregates.TIME),
            )
        late = win.lateness(groups.collect(), self.observed_ms, windows)
        self.observed_ms = dict(late.observed_ms)
        if not late.has_late:
            return new
        return aggregates.added_up(win.in_time(records, late), self.node)
