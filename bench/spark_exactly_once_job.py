"""Runs inside a Spark environment (spark_calls.py says how): copies with either guarantee."""

from __future__ import annotations

import time

from spark_calls import connector, scratch, serve, servers, start_session

import millstream.spark

spark = start_session()


def copy(source: str, target: str, checkpoint: str, batch: int, guarantee: str, columns: list[str]) -> float:
    """Seconds for everything there is from topic to topic, in batches of so many records."""
    reader = spark.readStream.format(connector).option("kafka.bootstrap.servers", servers).option("subscribe", source)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", str(batch))
    rows = reader.load().select(*columns)
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


serve({"copy": copy})
