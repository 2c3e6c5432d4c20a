"""Windows of fixed size, and which records come too late for them, exactly as the driver decides record by record.

Spark's watermark moves between micro-batches; stream time moves with every record of a partition. A window that starts
at s is closed for a record if some record before it, or itself, has a time of at least s + size + grace. So for each
partition and window there is a first offset from which on it is closed, and a record is late for a window if it lies
behind that. These offsets come out of the same pass that adds records up: each group of records that is added up also
says the last window that it closes, and between which offsets it lies. Nearly always no group lies behind an offset
that closes it. If one does, the pass is done again, and leaves the late records out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame, Row

    from millstream.streams.windows import TimeWindows

NEVER = (1 << 63) - 1


def in_windows(rows: DataFrame, windows: TimeWindows) -> DataFrame:
    """Each record once for each window that its time lies in: `start`, and `closes`, the last window it closes."""
    from pyspark.sql import functions as f

    at, size, advance = f.col("timestamp"), windows.size_ms, windows.advance_ms
    last = at - f.pmod(at, f.lit(advance))
    open_from = at - f.lit(size + windows.grace_ms)
    closes = open_from - f.pmod(open_from, f.lit(advance))
    if size == advance:
        return rows.withColumns({"closes": closes, "start": last})
    first = f.greatest(f.lit(0), at - f.lit(size - advance))
    first = first - f.pmod(first, f.lit(advance))
    starts = f.sequence(first, last, f.lit(advance).cast("bigint"))
    return rows.withColumns({"closes": closes, "start": f.explode(starts)})


def closed_before(observed_ms: int, windows: TimeWindows) -> int:
    """The last start whose window is closed at this stream time."""
    return (observed_ms - windows.size_ms - windows.grace_ms) // windows.advance_ms * windows.advance_ms


@dataclass(frozen=True)
class Lateness:
    """What one pass over a micro-batch has found out."""

    # (partition, start) -> the offset from which on the window takes nothing; -1 if it was closed before.
    closed_from: Mapping[tuple[int, int], int]
    observed_ms: Mapping[int, int]
    has_late: bool


def lateness(groups: Iterable[Row], observed_ms: Mapping[int, int], windows: TimeWindows) -> Lateness:
    """From groups of (partition, start, closes, first offset, last offset, newest time), and stream times before."""
    found = list(groups)
    # For each partition: at which offset which windows are closed for the first time, the latest start first.
    closings: dict[int, list[tuple[int, int]]] = {}
    observed = dict(observed_ms)
    for row in found:
        closings.setdefault(row.partition, []).append((row.closes, row.first_offset))
        observed[row.partition] = max(observed.get(row.partition, -1), row.newest_ms)
    first_by_close = {partition: _first_offsets(each) for partition, each in closings.items()}
    closed_from: dict[tuple[int, int], int] = {}
    has_late = False
    for row in found:
        place = (row.partition, row.start)
        if place not in closed_from:
            before_ms = observed_ms.get(row.partition)
            if before_ms is not None and row.start <= closed_before(before_ms, windows):
                closed_from[place] = -1
            else:
                closed_from[place] = _closed_from(first_by_close[row.partition], row.start)
        has_late |= row.last_offset > closed_from[place]
    return Lateness(closed_from, observed, has_late)


def _first_offsets(closings: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """By falling start: the first offset that closes the window of that start, or a later one."""
    lowest = NEVER
    steps: list[tuple[int, int]] = []
    for start, offset in sorted(closings, reverse=True):
        lowest = min(lowest, offset)
        steps.append((start, lowest))
    return steps[::-1]


def _closed_from(steps: list[tuple[int, int]], start: int) -> int:
    """The offset that closes a window: that of the first step at or behind its start."""
    from bisect import bisect_left

    at = bisect_left(steps, (start, -1))
    return steps[at][1] if at < len(steps) else NEVER


def in_time(rows: DataFrame, late: Lateness) -> DataFrame:
    """Records in windows, without those that are late for them."""
    from pyspark.sql import functions as f

    from millstream.streams.lower.native.frames import frame_of

    table = [(*place, offset) for place, offset in late.closed_from.items() if offset != NEVER]
    if not table:
        return rows
    closed = frame_of(rows.sparkSession, table, "partition int, start bigint, closed_from bigint")
    joined = rows.join(f.broadcast(closed), ["partition", "start"], "left")
    not_late: Column = f.col("closed_from").isNull() | (f.col("offset") <= f.col("closed_from"))
    return joined.where(not_late).drop("closed_from")
