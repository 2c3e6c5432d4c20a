"""Runs inside a Spark environment (spark_calls.py says how): queries that go on, and where their time goes."""

from __future__ import annotations

import time
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from spark_calls import connector, scratch, serve, servers, start_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

BATCH_WITHIN_S = 120
spark = start_session()
queries: list[StreamingQuery] = []


def shaped(rows: DataFrame, kind: str) -> tuple[DataFrame, Any]:
    """What is measured, and its output mode: records as they are, or counts of keys in windows."""
    if kind == "stateless":
        return rows.select("key", "value"), "append"
    counts = rows.withWatermark("timestamp", "10 seconds").groupBy(f.window("timestamp", "10 seconds"), "key")
    return counts.agg(f.count("*").alias("count"), f.max("value").alias("value")).select("key", "value"), "update"


def follow(source: str, target: str, checkpoint: str, kind: str, guarantee: str) -> bool:
    """From topic to topic, until `stop`."""
    reader = spark.readStream.format(connector).option("kafka.bootstrap.servers", servers).option("subscribe", source)
    rows, mode = shaped(reader.option("startingOffsets", "earliest").load(), kind)
    folder = f"{scratch}/{checkpoint}"
    if connector == "millstream":
        import millstream.spark

        query = millstream.spark.start(
            rows,
            servers=servers,
            topic=target,
            checkpoint=folder,
            output_mode=mode,
            guarantee=guarantee,  # type: ignore[arg-type]
        )
    else:
        writer = rows.writeStream.format(connector).option("kafka.bootstrap.servers", servers).option("topic", target)
        query = writer.outputMode(mode).option("checkpointLocation", folder).start()
    queries.append(query)
    return True


def idle(kind: str, checkpoint: str, batches: int, *, through_python: bool) -> dict[str, float]:
    """Spark alone: one row of a source of its own in each batch, to a sink that drops it. One batch follows the other.

    With `through_python` the sink is what any sink in Python needs at least: a callback, and a task that sees the rows.
    """
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1)
    made = source.option("advanceMillisPerBatch", 200).load()
    text = f.col("value").cast("string").cast("binary")
    rows, mode = shaped(made.select("timestamp", text.alias("key"), text.alias("value")), kind)
    writer = rows.writeStream.outputMode(mode).option("checkpointLocation", f"{scratch}/{checkpoint}")
    writer = writer.foreachBatch(_dropped_in_python) if through_python else writer.format("noop")
    queries.append(writer.start())
    deadline = time.monotonic() + BATCH_WITHIN_S
    while (queries[-1].lastProgress or {"batchId": 0})["batchId"] < batches:
        if time.monotonic() > deadline or not queries[-1].isActive:
            raise TimeoutError(f"{batches} batches of nothing took longer than {BATCH_WITHIN_S} s")
        time.sleep(0.1)
    return stop()


def _dropped_in_python(batch: DataFrame, _: int) -> None:
    batch.mapInArrow(_dropped, "value binary").collect()


def _dropped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.select(["value"]).slice(0, 0)


def stop() -> dict[str, float]:
    """Stop what runs. The medians of its later batches, in ms: each phase, and from one batch to the next."""
    query = queries.pop()
    done = [progress for progress in query.recentProgress if progress["numInputRows"]]
    query.stop()
    done = done[len(done) // 2 :]
    phases: dict[str, list[float]] = {"period": _periods_ms([progress["timestamp"] for progress in done])}
    for progress in done:
        for phase, took_ms in progress["durationMs"].items():
            phases.setdefault(phase, []).append(took_ms)
    return {phase: sorted(took)[len(took) // 2] for phase, took in phases.items() if took}


def _periods_ms(timestamps: list[str]) -> list[float]:
    starts = [datetime.fromisoformat(each).timestamp() * 1000 for each in timestamps]
    return [after - before for before, after in pairwise(starts)]


serve({"follow": follow, "idle": idle, "stop": stop})
