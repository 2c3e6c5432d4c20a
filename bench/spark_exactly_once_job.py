"""Runs inside a Spark environment: reads one JSON call a line and answers each with one JSON line.

    python spark_exactly_once_job.py <millstream | kafka> <bootstrap servers> <jars, comma separated> <scratch folder>

For `kafka` the interpreter has PySpark 4.0.0 with Spark's own connector and nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

connector, servers, jars, scratch = sys.argv[1:]
settings = {
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": f"{scratch}/warehouse",
    "spark.ui.enabled": "false",
}
if connector == "millstream":
    import millstream.spark

    spark = millstream.spark.session("local[2]", settings=settings, log_level="ERROR")
else:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**settings, "spark.driver.extraClassPath": jars.replace(",", ":")}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

queries: list[Any] = []


def read(topic: str, **options: str) -> DataFrame:
    reader = spark.readStream.format(connector).option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    return reader.option("startingOffsets", "earliest").options(**options).load()


def copy(source: str, target: str, checkpoint: str, batch: int, guarantee: str, columns: list[str]) -> float:
    """Seconds for everything there is from topic to topic, in batches of so many records."""
    rows = read(source, maxOffsetsPerTrigger=str(batch)).select(*columns)
    began = time.perf_counter()
    if guarantee == "exactly_once":
        query = millstream.spark.start(
            rows, servers=servers, topic=target, checkpoint=f"{scratch}/{checkpoint}", trigger="available_now"
        )
    else:
        writer = rows.writeStream.format(connector).option("kafka.bootstrap.servers", servers).option("topic", target)
        query = writer.option("checkpointLocation", f"{scratch}/{checkpoint}").trigger(availableNow=True).start()
    query.awaitTermination()
    return time.perf_counter() - began


def follow(source: str, target: str, checkpoint: str, kind: str, guarantee: str) -> bool:
    """Start a query that goes on: a copy, or counts of keys in windows."""
    rows: DataFrame = read(source)
    mode = "append"
    if kind == "windowed":
        counts = rows.withWatermark("timestamp", "10 seconds").groupBy(f.window("timestamp", "10 seconds"), "key")
        rows = counts.agg(f.count("*").alias("count"), f.max("value").alias("value"))
        mode = "update"
    rows = rows.select("key", "value")
    folder = f"{scratch}/{checkpoint}"
    if connector == "millstream":
        queries.append(
            millstream.spark.start(
                rows, servers=servers, topic=target, checkpoint=folder, output_mode=mode, guarantee=guarantee
            )
        )
    else:
        writer = rows.writeStream.format(connector).option("kafka.bootstrap.servers", servers).option("topic", target)
        queries.append(writer.outputMode(mode).option("checkpointLocation", folder).start())
    return True


def stop() -> dict[str, float]:
    """Stop what runs; the median of each phase of its batches, in ms."""
    query = queries.pop()
    phases: dict[str, list[float]] = {}
    for progress in query.recentProgress:
        if progress["numInputRows"]:
            for phase, took_ms in progress["durationMs"].items():
                phases.setdefault(phase, []).append(took_ms)
    query.stop()
    return {phase: sorted(took)[len(took) // 2] for phase, took in phases.items()}


CALLS: dict[str, Callable[..., Any]] = {"copy": copy, "follow": follow, "stop": stop}

for line in sys.stdin:
    call = json.loads(line)
    try:
        answer = {"ok": CALLS[call.pop("call")](**call)}
    except Exception as failure:  # noqa: BLE001  # whatever Spark raises is the caller's to judge
        answer = {"failed": str(failure)[:4000]}
    print(json.dumps(answer), flush=True)
