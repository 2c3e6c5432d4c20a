"""Word count: lines in one topic, running totals in another, exactly once.

python examples/word_count.py
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f

import millstream.spark
from millstream import Broker, arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = [
    "a mill takes the stream as it comes",
    "the stream does not wait for the mill",
    "the miller sleeps and the mill grinds on",
]


def run(spark: SparkSession, servers: str) -> dict[str, int]:
    """Feed the lines, count, and read the totals back."""
    arrow.write(servers, "lines", pa.table({"value": LINES}))

    lines = (
        spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "lines")
        .option("startingOffsets", "earliest")
        .load()
    )
    words = lines.select(f.explode(f.split(f.col("value").cast("string"), " ")).alias("word"))
    counts = words.groupBy("word").count()
    with TemporaryDirectory() as checkpoint:
        query = millstream.spark.start(
            counts,
            servers=servers,
            topic="counts",
            checkpoint=checkpoint,
            output_mode="update",  # a word's new total, whenever it changes
            key="word",
            value=f.col("count").cast("string"),
            trigger="available_now",  # leave it out, and the query goes on for ever
        )
        query.awaitTermination()

    totals = arrow.read(servers, "counts")  # the newest total of a word is the last one
    return {key.decode(): int(value) for key, value in zip(*_columns(totals, "key", "value"), strict=True)}


def _columns(table: pa.Table, *names: str) -> list[list[bytes]]:
    return [table[name].to_pylist() for name in names]


def main() -> None:
    with Broker() as broker:
        spark = millstream.spark.session("local[2]", log_level="ERROR")
        totals = run(spark, broker.bootstrap_servers)
        for word, count in sorted(totals.items(), key=lambda each: (-each[1], each[0])):
            print(f"{count:>3}  {word}")
        spark.stop()


if __name__ == "__main__":
    main()
