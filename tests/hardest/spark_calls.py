"""Runs inside Spark's environment: reads one JSON call a line and answers each with one JSON line.

    python spark_calls.py <bootstrap servers> <jars, comma separated> <scratch folder>

The call is {"call": name, ...arguments}; the answer {"ok": result} or {"failed": text}.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from collections.abc import Callable

servers, jars, scratch = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "512m")
    .config("spark.driver.extraClassPath", jars.replace(",", ":"))
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def write(topic: str, first: int, count: int) -> None:
    """Numbers as keys, their squares as values, with a header."""
    numbers = spark.range(first, first + count, numPartitions=2)
    rows = numbers.select(
        f.col("id").cast("string").alias("key"),
        (f.col("id") * f.col("id")).cast("string").alias("value"),
        f.array(f.struct(f.lit("from").alias("key"), f.lit(b"spark").alias("value"))).alias("headers"),
    )
    rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).option(
        "includeHeaders", value=True
    ).save()


def read(options: dict[str, str]) -> list[list[Any]]:
    """A batch read: partition, offset, key, value, names of headers."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("includeHeaders", value=True)
    rows: DataFrame = reader.options(**options).load()
    found = rows.select(
        "partition", "offset", f.col("key").cast("string"), f.col("value").cast("string"), f.expr("headers.key")
    )
    return sorted(list(row) for row in found.collect())


def stream(source: str, target: str, checkpoint: str, options: dict[str, str]) -> list[int]:
    """Copy all that has come since the checkpoint from topic to topic; the rows of each batch."""
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "200")
        .options(**options)
        .load()
    )
    query = (
        rows.select("key", f.concat(f.lit("copy of "), f.col("value").cast("string")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("checkpointLocation", f"{scratch}/{checkpoint}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [progress["numInputRows"] for progress in query.recentProgress]


def count_in_windows(source: str, checkpoint: str) -> dict[str, int]:
    """A streaming aggregation over what is there: how many values end in each digit."""
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribePattern", f"{source}.*")
        .option("startingOffsets", "earliest")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    last_digit = f.substring(f.col("value").cast("string"), -1, 1)
    query = (
        rows.groupBy(last_digit.alias("digit"))
        .count()
        .writeStream.format("memory")
        .queryName("digits")
        .outputMode("complete")
        .option("checkpointLocation", f"{scratch}/{checkpoint}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return {row["digit"]: row["count"] for row in spark.sql("select digit, count from digits").collect()}


CALLS: dict[str, Callable[..., Any]] = {"write": write, "read": read, "stream": stream, "digits": count_in_windows}

for line in sys.stdin:
    call = json.loads(line)
    try:
        answer = {"ok": CALLS[call.pop("call")](**call)}
    except Exception as failure:  # noqa: BLE001  # whatever Spark raises is the caller's to judge
        answer = {"failed": str(failure)[:4000]}
    print(json.dumps(answer), flush=True)
