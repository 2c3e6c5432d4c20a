"""The queries of a session as a table in the terminal, drawn again and again in its place."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.live import Live
from rich.table import Table

from millstream.spark.progress import FAILED, IDLE, Watch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from pyspark.sql import SparkSession
    from rich.console import Console

    from millstream.spark.progress import Snapshot

_COLOURS: Final = {FAILED: "red", IDLE: "dim"}


def table_of(snapshots: Iterable[Snapshot], *, now: datetime) -> Table:
    """One line for each query; what no query has is left out, and all of it fits into eighty columns."""
    queries = list(snapshots)
    columns: dict[str, list[str]] = {
        "batch": [f"{each.batch_id:,}" if each.batch_id >= 0 else "" for each in queries],
        "records": [f"{each.rows_in_all:,}" for each in queries],
        "per s": [f"{each.processed_per_s:,.0f}" for each in queries],
        "ms": [f"{each.batch_ms:,}" for each in queries],
        "lag": ["" if each.lag_in_all is None else f"{each.lag_in_all:,}" for each in queries],
        "late by": [_late_by(each.watermark, now) for each in queries],
        "state": [f"{each.state_rows:,}" if each.state_rows else "" for each in queries],
        "dropped": [f"{each.dropped_in_all:,}" if each.dropped_in_all else "" for each in queries],
    }
    table = Table(title="queries", title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("query", overflow="ellipsis", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=max((len(each.state) for each in queries), default=0))
    shown = [heading for heading, cells in columns.items() if any(cells)]
    for heading in shown:
        table.add_column(heading, justify="right", no_wrap=True)
    for number, each in enumerate(queries):
        state = f"[{_COLOURS.get(each.state, 'green')}]{each.state}[/]"
        table.add_row(each.name, state, *[columns[heading][number] for heading in shown])
    return table


def _late_by(watermark: datetime | None, now: datetime) -> str:
    """How far the watermark is behind; one at 1970 has not moved yet."""
    if watermark is None or watermark.timestamp() <= 0:
        return ""
    return f"{(now - watermark).total_seconds():,.1f} s"


class LiveTable:
    """Draws until its block ends; the last table stays."""

    def __init__(self, spark: SparkSession, *, every_s: float = 0.5, console: Console | None = None) -> None:
        self._spark = spark
        self.watch = Watch()
        self._live = Live(
            get_renderable=self._draw, refresh_per_second=1 / every_s, console=console, vertical_overflow="visible"
        )

    def __enter__(self) -> Self:
        self.watch.listen(self._spark)
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        self._spark.streams.removeListener(self.watch)

    def _draw(self) -> Table:
        return table_of(self.watch.snapshots(), now=datetime.now(UTC))
