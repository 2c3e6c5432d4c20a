"""The main job: a shop's orders and payments, Spark pipelines on them, and the results as they fill in.

Run it with `make demo`; `python examples/demo.py --keep` goes on until Ctrl-C. Everything happens on this machine, in a
temporary directory: the broker in this process, Spark beside it. Two pipelines are written in Spark's words, one is the
streams application of streams_fraud.py, whose table is asked for a card at the end. All write exactly once, and the
sums are compared with what was fed in.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from demo_feed import ORDERS, PAYMENTS, USES, Feed
from demo_screen import BY_CITY, PAID, SUSPECTS, Results, Screen
from pyspark.sql import functions as f
from rich.console import Console
from streams_fraud import topology as fraud

import millstream.spark
from millstream import Broker
from millstream.spark.java import NoJava
from millstream.streams import Application
from millstream.streams.queries import KeyValueView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

PARTITIONS = 3
ASKED = 1_000
console = Console()


def read(spark: SparkSession, servers: str, topic: str, schema: str) -> DataFrame:
    records = (
        spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    return millstream.spark.typed(records, schema, keep=["timestamp"]).rows


def start_pipelines(spark: SparkSession, servers: str, folder: Path) -> Iterator[StreamingQuery]:
    """Two queries, each with its own checkpoint, each exactly once, started as they are asked for."""
    orders = read(spark, servers, ORDERS, "order bigint, city string, euros double")
    payments = read(spark, servers, PAYMENTS, "order bigint, card string, ok boolean")

    def start(rows: DataFrame, topic: str, key: str, output_mode: str) -> StreamingQuery:
        return millstream.spark.start(
            rows,
            servers=servers,
            topic=topic,
            checkpoint=folder / topic,
            output_mode=output_mode,  # type: ignore[arg-type]
            key=f.col(key).cast("string"),
            timestamp=None,
            value_format="json",
            name=topic,
        )

    # Enrich: each payment that went through, with what was ordered.
    placed = orders.withColumnsRenamed({"order": "placed", "timestamp": "placed_at"}).withWatermark(
        "placed_at", "10 seconds"
    )
    paid = payments.where("ok").withWatermark("timestamp", "10 seconds")
    in_time = f.expr("order = placed and timestamp between placed_at and placed_at + interval 10 seconds")
    enriched = paid.join(placed, in_time).select("order", "card", "city", "euros")

    # Count: orders and euros by city in windows of five seconds.
    windows = (
        orders.withWatermark("timestamp", "10 seconds")
        .groupBy(f.window("timestamp", "5 seconds"), "city")
        .agg(f.count("*").alias("orders"), f.sum("euros").alias("euros"))
        .select(f.date_format("window.start", "HH:mm:ss").alias("window"), "city", "orders", "euros")
        .withColumn("id", f.concat_ws(" ", "window", "city"))
    )

    yield start(enriched, PAID, "order", "append")
    yield start(windows, BY_CITY, "id", "update")


def start_watch(spark: SparkSession, servers: str, folder: Path) -> Application:
    """Watch: cards that are used too often in five seconds, as a table that can be asked."""
    application = Application(fraud(), "fraud-watch", bootstrap_servers=servers, settings={"state.dir": str(folder)})
    return application.start(spark)


def ask(watch: Application, cards: set[str]) -> tuple[int, float]:
    """How many of these cards the table knows, and how long an answer takes, in microseconds. No Spark is involved."""
    view = watch.store("possible-fraud")
    assert isinstance(view, KeyValueView)
    view.wait_until_current()
    found = {windowed.key: windowed for windowed, _ in view.all()}
    known = [found[card] for card in cards if card in found]
    began = time.perf_counter()
    for _ in range(ASKED):
        for windowed in known:
            view.get(windowed)
    return len(known), (time.perf_counter() - began) / (ASKED * max(1, len(known))) * 1e6


class Interrupted:
    """Ctrl-C, noted until somebody asks: Spark's own handler talks to its JVM, maybe in the middle of another talk, and
    both then fail."""

    def __init__(self) -> None:
        self._noted = threading.Event()
        self.is_set = self._noted.is_set
        self.note_it()

    def note_it(self) -> None:
        signal.signal(signal.SIGINT, lambda *_: self._noted.set())

    def end_here(self) -> None:
        if self.is_set():
            raise KeyboardInterrupt


def run(seconds: float, *, keep: bool) -> None:
    started = time.perf_counter()
    interrupted = Interrupted()
    with Broker() as broker, TemporaryDirectory(prefix="millstream-demo-") as folder:
        servers = broker.bootstrap_servers
        took_ms = (time.perf_counter() - started) * 1000
        console.print(f"[bold]Millstream[/] serves Kafka's protocol on [cyan]{servers}[/] after {took_ms:.0f} ms.")
        for topic in (ORDERS, PAYMENTS, USES, PAID, BY_CITY, SUSPECTS):
            broker.create_topic(topic, partitions=PARTITIONS)
        try:
            with quiet_children(Path(folder) / "spark.log"):
                spark = millstream.spark.session("local[2]", name="demo", log_level="OFF")
        except Exception:
            # A terminal's Ctrl-C reaches children too: one that was asked for Java's version says none.
            interrupted.end_here()
            raise
        # Spark has set its own.
        interrupted.note_it()
        console.print(f"Spark {spark.version} is up after {time.perf_counter() - started:.1f} s; three pipelines:")
        feed, results = Feed(servers), Results(servers)
        queries: list[StreamingQuery] = []
        watch: Application | None = None
        answered = (0, 0.0)
        try:
            with Screen(spark, feed, results, console) as screen:
                interrupted.end_here()
                for query in start_pipelines(spark, servers, Path(folder)):
                    queries.append(query)
                    interrupted.end_here()
                watch = start_watch(spark, servers, Path(folder))
                queries += watch.queries
                feed.start(None if keep else seconds)
                screen.follow(queries, interrupted.is_set)
            answered = ask(watch, feed.stolen)
        except KeyboardInterrupt:
            console.print("stopping ...")
        finally:
            feed.stop()
            for query in queries:
                stop(query)
            if watch is not None:
                watch.stop()
            spark.stop()
        if not keep and not interrupted.is_set():
            summarize(feed, results, answered, time.perf_counter() - started)


@contextmanager
def quiet_children(log: Path) -> Iterator[None]:
    """What Spark's processes have to say while they start and end goes to a file: the screen is for results."""
    stderr = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def stop(query: StreamingQuery) -> None:
    """Between two batches, if there is a gap."""
    deadline = time.monotonic() + 20
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.02)
    query.stop()


def summarize(feed: Feed, results: Results, answered: tuple[int, float], took_s: float) -> None:
    """What went in must have come out, once."""
    console.print(f"\n[bold]Done[/] in {took_s:.0f} s.")
    known, answer_us = answered
    checks = (
        ("orders counted in windows", results.orders_counted, feed.orders),
        ("payments joined with their order", results.paid, feed.paid),
        ("stolen cards noticed", len(results.cards & feed.stolen), len(feed.stolen)),
        ("cards suspected for nothing", len(results.cards - feed.stolen), 0),
        (f"stolen cards that the table knows when asked, in {answer_us:.0f} us each", known, len(feed.stolen)),
    )
    for what, found, expected in checks:
        console.print(
            f"  {'[green]ok[/]' if found == expected else '[red]WRONG[/]'}  {what}: {found:,} of {expected:,}"
        )
    console.print("\nNow you: [bold]millstream broker[/], any Kafka client on localhost:9092, and docs/spark.md.")
    if any(found != expected for _, found, expected in checks):
        sys.exit("the pipelines did not write exactly once")


def main() -> None:
    parser = argparse.ArgumentParser(description="Orders and payments through Spark pipelines, on this machine.")
    parser.add_argument("--seconds", type=float, default=20, help="how long orders come in")
    parser.add_argument("--keep", action="store_true", help="go on until Ctrl-C")
    arguments = parser.parse_args()
    try:
        run(arguments.seconds, keep=arguments.keep)
    except NoJava as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        # While Spark was not there yet.
        console.print("stopping ...")


if __name__ == "__main__":
    main()
