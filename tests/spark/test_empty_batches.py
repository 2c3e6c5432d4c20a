"""Micro-batches without records: there are none in update mode, where they would have nothing to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f

from millstream import arrow
from millstream.spark.empty_batches import SETTING, needed_ones_only
from millstream.spark.exactly_once import start
from tests.support.topics import until_settled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

MINUTE_MS = 60_000
# More than the watermark lags behind: so each record ends the minute before its own.
AFTER_MS = 2_000


def counts(rows: DataFrame) -> DataFrame:
    windows = rows.withWatermark("timestamp", "1 second").groupBy(f.window("timestamp", "1 minute"))
    return windows.count().select(f.col("count").cast("string").alias("value"))


def feed(servers: str, topic: str, *, minute: int) -> None:
    times = pa.array([minute * MINUTE_MS + AFTER_MS], pa.int64())
    arrow.write(servers, topic, pa.table({"value": [b"x"], "timestamp": times}))


def test_counts_in_windows_need_a_batch_without_records_in_append_mode_only(
    spark: SparkSession,
    bootstrap: str,
    make_topic: Callable[..., str],
    load_stream: Callable[..., DataFrame],
    tmp_path: Path,
) -> None:
    modes: tuple[Any, ...] = ("update", "append")
    source, targets = make_topic(), {mode: make_topic(1, f"-{mode}") for mode in modes}
    # The first one before the queries start: a query's first batch is there even if it is empty.
    feed(bootstrap, source, minute=1)
    queries = {
        mode: start(
            counts(load_stream(subscribe=source)),
            servers=bootstrap,
            topic=target,
            checkpoint=tmp_path / mode,
            output_mode=mode,
        )
        for mode, target in targets.items()
    }
    for minute in (2, 3):
        for query in queries.values():
            query.processAllAvailable()
        feed(bootstrap, source, minute=minute)
    without = {}
    for mode, query in queries.items():
        query.processAllAvailable()
        done = {progress["batchId"]: progress["numInputRows"] for progress in query.recentProgress}
        without[mode] = [batch for batch, records in done.items() if records == 0 and batch != max(done)]
        query.stop()
    assert without["update"] == []
    assert without["append"], "Spark has learnt to do without; then there is nothing to switch off any more"
    until_settled(bootstrap, *targets.values())
    # One record each in three minutes, of which append mode knows that two are over.
    assert arrow.read(bootstrap, targets["update"])["value"].to_pylist() == [b"1"] * 3
    assert arrow.read(bootstrap, targets["append"])["value"].to_pylist() == [b"1"] * 2
    assert spark.conf.get(SETTING) == "true", "others of the session are as they were"


def test_operators_with_timers_keep_them(spark: SparkSession) -> None:
    """Nothing runs here, so there is no broker either: it is Spark's plan that is looked at."""

    def nothing(_key: Any, _rows: Iterator[pd.DataFrame], _state: Any) -> Iterator[pd.DataFrame]:
        return iter(())

    reader = spark.readStream.format("millstream").option("kafka.bootstrap.servers", "127.0.0.1:9")
    rows = reader.option("subscribe", "no-matter").load()
    timed = rows.groupBy("key").applyInPandasWithState(
        nothing, "value binary", "number bigint", "update", "ProcessingTimeTimeout"
    )
    with needed_ones_only(timed, "update"):
        assert spark.conf.get(SETTING) == "true"
    with needed_ones_only(counts(rows), "append"):
        assert spark.conf.get(SETTING) == "true"
    with needed_ones_only(counts(rows), "update"):
        assert spark.conf.get(SETTING) == "false"
    assert spark.conf.get(SETTING) == "true"
