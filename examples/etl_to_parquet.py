"""ETL: JSON orders from a topic to Parquet files by day; what does not parse goes to a topic of dead letters.

python examples/etl_to_parquet.py
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f

import millstream.spark
from millstream import Broker, arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)
ORDERS = 300


def feed(servers: str) -> None:
    """Orders of three days, and two records that are none."""
    times = [FIRST_DAY + timedelta(hours=72 * number / ORDERS) for number in range(ORDERS)]
    orders = [json.dumps({"order": number, "euros": 10 + number % 90}) for number in range(ORDERS)]
    broken = ["{not json", '{"order": "seven", "euros": 7}']
    values = [*orders, *broken]
    arrow.write(servers, "orders", pa.table({"value": values, "timestamp": [*times, *times[:2]]}))


def run(spark: SparkSession, servers: str, folder: Path) -> tuple[dict[str, int], list[str]]:
    """(orders of each day in the files, reasons of the dead letters)."""
    feed(servers)
    records = (
        spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    orders = millstream.spark.typed(records, "order bigint, euros double", on_error="dead_letter")
    writer = (
        orders.rows.withColumn("day", f.to_date("timestamp"))
        .writeStream.format("parquet")
        .partitionBy("day")
        .option("path", str(folder / "orders"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
    )
    files = millstream.spark.started(writer.start)
    assert orders.dead_letters is not None
    letters = millstream.spark.start(
        orders.dead_letters,
        servers=servers,
        topic="orders-dead",
        checkpoint=folder / "checkpoint-dead",
        trigger="available_now",
    )
    files.awaitTermination()
    letters.awaitTermination()

    by_day = spark.read.parquet(str(folder / "orders")).groupBy("day").count().orderBy("day").collect()
    headers = arrow.read(servers, "orders-dead", columns=["headers"])["headers"].to_pylist()
    reasons = [each["value"].decode() for record in headers for each in record if each["key"].endswith("reason")]
    return {str(row["day"]): row["count"] for row in by_day}, reasons


def main() -> None:
    with Broker() as broker, TemporaryDirectory() as folder:
        spark = millstream.spark.session("local[2]", log_level="ERROR", settings={"spark.sql.session.timeZone": "UTC"})
        days, reasons = run(spark, broker.bootstrap_servers, Path(folder))
        for day, count in days.items():
            print(f"{day}  {count:>4} orders")
        for reason in reasons:
            print(f"dead letter: {reason}")
        spark.stop()


if __name__ == "__main__":
    main()
