"""An exactly-once copy from topic to topic, and the lag that ordinary tools see.

python examples/exactly_once_copy.py
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

import millstream.spark
from millstream import Broker, arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = 50_000


def run(spark: SparkSession, servers: str) -> tuple[bool, str, dict[tuple[str, int], int]]:
    """(whether the copy is the same, the group, its offsets)."""
    numbers = [str(number) for number in range(RECORDS)]
    arrow.write(servers, "source", pa.table({"key": numbers, "value": numbers}))
    source = (
        spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "source")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "20000")  # several batches, each a transaction
        .load()
    )
    with TemporaryDirectory() as checkpoint:
        query = millstream.spark.start(
            source.select("key", "value", "timestamp"),
            servers=servers,
            topic="copy",
            checkpoint=checkpoint,
            trigger="available_now",
        )
        query.awaitTermination()
        group = str(query.id)  # `millstream group describe <id>` shows its lag
    copied = arrow.read(servers, "copy", columns=["value"])["value"].to_pylist()
    same = sorted(copied) == sorted(number.encode() for number in numbers)
    return same, group, arrow.committed(servers, group)


def main() -> None:
    with Broker() as broker:
        spark = millstream.spark.session("local[2]", log_level="ERROR")
        same, group, offsets = run(spark, broker.bootstrap_servers)
        print(f"{RECORDS:,} records were copied, each once: {same}")
        for (topic, partition), offset in offsets.items():
            print(f"group {group} has read {topic} {partition} up to {offset:,}")
        spark.stop()


if __name__ == "__main__":
    main()
