"""What the demo shows: the queries' progress, and the results as they arrive in their topics."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.columns import Columns
from rich.console import Group
from rich.live import Live
from rich.table import Table

from millstream import arrow
from millstream.spark.progress import Watch
from millstream.spark.progress_table import table_of
from millstream.streams.serdes import LONG_SERDE, STRING_SERDE, TimeWindowedSerde

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from demo_feed import Feed
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from rich.console import Console

PAID, BY_CITY, SUSPECTS = "paid-orders", "orders-by-city", "possible-fraud"
SUSPECT = TimeWindowedSerde(STRING_SERDE, size_ms=5_000)
COLUMNS = ("topic", "key", "value")
LINES = 8
EVERY_S = 0.5
PATIENCE_S = 90


class Results:
    """The results so far, read from their topics as any consumer would: only what is committed."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._offsets: dict[tuple[str, int], int] = {}
        self.windows: dict[tuple[str, str], dict[str, Any]] = {}
        # card -> (how many attempts, the end of the window in which they were)
        self.suspects: dict[str, tuple[int, int]] = {}
        self.paid = 0
        self.euros_paid = 0.0

    @property
    def orders_counted(self) -> int:
        return sum(each["orders"] for each in self.windows.values())

    @property
    def cards(self) -> set[str]:
        return set(self.suspects)

    def poll(self) -> None:
        topics = [PAID, BY_CITY, SUSPECTS]
        with arrow.stream(self._servers, topics, start=self._offsets or "earliest", end="latest") as stream:
            for batch in stream:
                for topic, key, value in zip(*(batch[name].to_pylist() for name in COLUMNS), strict=True):
                    if topic == SUSPECTS:
                        self._suspect(key, value)
                    else:
                        self._take(topic, json.loads(value))
            self._offsets = dict(stream.offsets)

    def _take(self, topic: str, value: dict[str, Any]) -> None:
        if topic == PAID:
            self.paid += 1
            self.euros_paid += value["euros"]
        else:
            # The newest total of a window and city replaces the one before.
            self.windows[value["window"], value["city"]] = value

    def _suspect(self, key: bytes, value: bytes | None) -> None:
        """A row of a table of streams: its key is a card in a window, and without value it is gone."""
        windowed = SUSPECT.deserialize(key)
        if value is not None:
            self.suspects[windowed.key] = (LONG_SERDE.deserialize(value), windowed.window.end_ms)


class Screen:
    """Draws until its block ends."""

    def __init__(self, spark: SparkSession, feed: Feed, results: Results, console: Console) -> None:
        self._spark = spark
        self._feed = feed
        self._results = results
        self._watch = Watch()
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="visible")

    def __enter__(self) -> Self:
        self._spark.streams.addListener(self._watch)
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        self._spark.streams.removeListener(self._watch)

    def follow(self, queries: list[StreamingQuery], interrupted: Callable[[], bool]) -> None:
        """Until the feed has ended and everything that it wrote has come through."""
        patience_s = time.monotonic() + PATIENCE_S
        while self._feed.running or (not self._complete() and time.monotonic() < patience_s):
            if interrupted():
                raise KeyboardInterrupt
            time.sleep(EVERY_S)
            if self._feed.running:
                patience_s = time.monotonic() + PATIENCE_S
            for query in queries:
                if (error := query.exception()) is not None:
                    raise error
            self._results.poll()
            self._live.update(self._draw(), refresh=True)

    def _complete(self) -> bool:
        feed, results = self._feed, self._results
        return results.orders_counted >= feed.orders and results.paid >= feed.paid and results.cards >= feed.stolen

    def _draw(self) -> Group:
        results = self._results
        totals = Table(title=f"topic {BY_CITY}: windows of five seconds", title_justify="left", box=SIMPLE_HEAD)
        for heading in ("from", "city", "orders", "euros"):
            totals.add_column(heading, justify="left" if heading in ("from", "city") else "right")
        for (window, city), each in sorted(results.windows.items(), reverse=True)[:LINES]:
            totals.add_row(window, city, f"{each['orders']:,}", f"{each['euros']:,.0f}")
        cards = Table(title=f"topic {SUSPECTS}: cards in a hurry", title_justify="left", box=SIMPLE_HEAD)
        cards.add_column("card")
        cards.add_column("attempts", justify="right")
        cards.add_column("before")
        for card, (attempts, end_ms) in sorted(results.suspects.items(), key=lambda each: -each[1][1])[:LINES]:
            cards.add_row(card, str(attempts), f"{datetime.fromtimestamp(end_ms / 1000, UTC):%H:%M:%S}")
        return Group(
            f"topics orders, payments: {self._feed.orders:,} orders, {self._feed.payments:,} payments",
            f"topic {PAID}: {results.paid:,} payments joined with their order, {results.euros_paid:,.0f} euros",
            table_of(self._watch.snapshots(), now=datetime.now(UTC)),
            Columns([totals, cards]),
        )
