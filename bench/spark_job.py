"""Runs inside a Spark environment (spark_calls.py says how): the same queries through either connector."""

from __future__ import annotations

import time

from pyspark.sql import functions as f
from spark_calls import connector, scratch, serve, servers, start_session

spark = start_session()


def scan(topic: str) -> dict[str, float]:
    """Count all records and the bytes of their values."""
    reader = spark.read.format(connector).option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    start = time.perf_counter()
    row = reader.load().agg(f.count("*"), f.sum(f.length("value"))).collect()[0]
    return {"seconds": time.perf_counter() - start, "records": row[0], "bytes": row[1]}


def copy(source: str, target: str, checkpoint: str, batch: int) -> dict[str, float]:
    """Everything there is from topic to topic, in batches of so many records."""
    reader = spark.readStream.format(connector).option("kafka.bootstrap.servers", servers).option("subscribe", source)
    rows = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", str(batch)).load()
    start = time.perf_counter()
    query = (
        rows.select("key", "value")
        .writeStream.format(connector)
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("checkpointLocation", f"{scratch}/{checkpoint}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return {"seconds": time.perf_counter() - start}


serve({"scan": scan, "copy": copy})
