"""Progress: what a query does is visible while it runs, as a table and as metrics."""

from __future__ import annotations

import io
import json
import urllib.request
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from prometheus_client import CollectorRegistry, generate_latest
from pyspark.sql import functions as f
from rich.console import Console

from millstream import arrow
from millstream.spark.exactly_once import start
from millstream.spark.progress import ENDED, FAILED, Snapshot, Watch, expose, followed_by
from millstream.spark.progress_metrics import QueryCollector
from millstream.spark.progress_table import LiveTable, table_of
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    MakeTopic = Callable[..., str]
    Load = Callable[..., DataFrame]

PROGRESS = {
    "id": "1",
    "name": "orders",
    "batchId": 7,
    "numInputRows": 40,
    "inputRowsPerSecond": 80.0,
    "processedRowsPerSecond": 120.5,
    "durationMs": {"triggerExecution": 332, "addBatch": 200},
    "eventTime": {"watermark": "2026-03-01T12:00:00.000Z"},
    "stateOperators": [{"numRowsTotal": 12}],
    "observedMetrics": {"millstream-values": {"dropped": 2}, "mine": {"dropped": 9}},
    "sources": [
        {
            "endOffset": {"orders": {"0": 10, "1": 20}, "@ids": {"orders": "abc"}},
            "latestOffset": {"orders": {"0": 15, "1": 20, "2": 4}, "@ids": {"orders": "abc"}},
        },
        {"endOffset": 3, "latestOffset": 9},
    ],
}


def test_a_progress_adds_up() -> None:
    once = followed_by(Snapshot("1", "1"), PROGRESS)
    twice = followed_by(once, {**PROGRESS, "batchId": 8, "observedMetrics": {}})
    assert (twice.rows_in_all, twice.dropped_in_all, twice.batch_id) == (80, 2, 8)
    assert once.lag == {("orders", 0): 5, ("orders", 1): 0, ("orders", 2): 4}
    assert once.lag_in_all == 9
    assert once.batch_ms == 332
    assert once.watermark == datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_table_has_rates_times_lag_and_watermark() -> None:
    snapshot = followed_by(Snapshot("1", "1"), PROGRESS)
    out = io.StringIO()
    now = datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(seconds=2.5)
    Console(file=out, width=160).print(table_of([snapshot], now=now))
    for text in ("orders", "running", "332", "9", "2.5 s", "12", "120"):
        assert text in out.getvalue()


def test_the_metrics_have_the_same() -> None:
    watch = Watch()
    watch._queries["1"] = followed_by(Snapshot("1", "1"), PROGRESS)
    registry = CollectorRegistry()
    registry.register(QueryCollector(watch))
    page = generate_latest(registry).decode()
    for line in (
        'millstream_spark_up{query="orders"} 1.0',
        'millstream_spark_processed_rows_per_second{query="orders"} 120.5',
        'millstream_spark_batch_seconds{phase="triggerExecution",query="orders"} 0.332',
        'millstream_spark_lag_records{partition="0",query="orders",topic="orders"} 5.0',
        'millstream_spark_dropped_total{query="orders"} 2.0',
        'millstream_spark_rows_total{query="orders"} 40.0',
        'millstream_spark_watermark_timestamp_seconds{query="orders"} 1.7723664e+09',
    ):
        assert line in page, page


def test_a_query_that_runs_already_is_met_and_no_batch_counts_twice() -> None:
    watch = Watch()
    watch.meet("1", "orders", PROGRESS)
    watch.meet("2", None, None)
    assert [(each.name, each.rows_in_all, each.lag_in_all) for each in watch.snapshots()] == [
        ("orders", 40, 9),
        ("2", 0, None),
    ]
    watch.onQueryProgress(event(PROGRESS))
    watch.onQueryProgress(event({**PROGRESS, "batchId": 8}))
    watch.meet("1", "orders", PROGRESS)
    assert [(each.rows_in_all, each.batch_id) for each in watch.snapshots()] == [(80, 8), (0, -1)]


def event(progress: dict[str, object]) -> Any:
    return SimpleNamespace(progress=SimpleNamespace(json=json.dumps(progress)))


def test_a_running_query_is_seen(
    spark: SparkSession, bootstrap: str, make_topic: MakeTopic, load_stream: Load, tmp_path: Path
) -> None:
    source, target = make_topic(2), make_topic(1, "-copy")
    values = [json.dumps({"n": number}).encode() for number in range(100)]
    arrow.write(bootstrap, source, pa.table({"value": values}))
    rows = load_stream(subscribe=source, maxOffsetsPerTrigger="60").withWatermark("timestamp", "1 second")
    (port,) = free_ports(1)
    out = io.StringIO()
    exposed = expose(spark, port=port, registry=CollectorRegistry())
    try:
        with LiveTable(spark, console=Console(file=out, width=160)) as table:
            query = start(
                rows.select("value", "timestamp"), servers=bootstrap, topic=target, checkpoint=tmp_path, name=target
            )
            wait_until(
                lambda: [each for each in seen(table.watch, target) if each.rows_in_all == 100], "rows", within_s=120
            )
            page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
            with LiveTable(spark, console=Console(file=io.StringIO())) as later:
                assert seen(later.watch, target), "a query that ran before is there at once"
            query.stop()
            wait_until(
                lambda: [each for each in seen(table.watch, target) if each.state == ENDED], "its end", within_s=120
            )
    finally:
        spark.streams.removeListener(exposed)
    (last,) = seen(table.watch, target)
    assert last.lag_in_all == 0
    assert last.batch_ms > 0
    assert f'millstream_spark_rows_total{{query="{target}"}} 100.0' in page
    assert f'millstream_spark_lag_records{{partition="0",query="{target}",topic="{source}"}} 0.0' in page
    assert target in out.getvalue()


def test_a_query_that_failed_says_so(
    spark: SparkSession, load_stream: Load, make_topic: MakeTopic, bootstrap: str, tmp_path: Path
) -> None:
    source = make_topic()
    arrow.write(bootstrap, source, pa.table({"value": [b"x"]}))
    rows = load_stream(subscribe=source).select(f.raise_error(f.lit("it broke")).cast("string").alias("value"))
    watch = Watch()
    spark.streams.addListener(watch)
    try:
        start(rows, servers=bootstrap, topic=source, checkpoint=tmp_path, name=source)
        wait_until(lambda: [each for each in seen(watch, source) if each.state == FAILED], "its end", within_s=120)
    finally:
        spark.streams.removeListener(watch)
    assert "it broke" in seen(watch, source)[0].error


def seen(watch: Watch, name: str) -> list[Snapshot]:
    return [each for each in watch.snapshots() if each.name == name]
