"""Log aggregation: lines of many services, errors counted by service in windows of a minute.

python examples/log_aggregation.py
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f

import millstream.spark
from millstream import Broker, arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATTERN = r"^(\S+) (ERROR|WARN|INFO) (\S+): (.*)$"
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SERVICES = ("checkout", "search", "mail")


def lines() -> list[str]:
    """Three minutes of logs: every tenth line is an error, most of them of one service."""
    found = []
    for second in range(180):
        at = (START + timedelta(seconds=second)).isoformat()
        service = SERVICES[second % len(SERVICES)]
        level = "ERROR" if second % 10 == 0 else "INFO"
        found.append(f"{at} {level} {'checkout' if level == 'ERROR' and second >= 60 else service}: step {second}")
    return found


def run(spark: SparkSession, servers: str) -> dict[tuple[str, str], int]:
    """Errors by minute and service, as they stand in the output topic."""
    arrow.write(servers, "logs", pa.table({"value": lines()}))
    logs = (
        spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "logs")
        .option("startingOffsets", "earliest")
        .load()
    )
    line = f.col("value").cast("string")
    parsed = logs.select(
        f.to_timestamp(f.regexp_extract(line, PATTERN, 1)).alias("at"),
        f.regexp_extract(line, PATTERN, 2).alias("level"),
        f.regexp_extract(line, PATTERN, 3).alias("service"),
    )
    errors = (
        parsed.where("level = 'ERROR'")
        .withWatermark("at", "1 minute")
        .groupBy(f.window("at", "1 minute"), "service")
        .count()
        .select(f.date_format("window.start", "HH:mm").alias("minute"), "service", f.col("count").alias("errors"))
    )
    with TemporaryDirectory() as checkpoint:
        millstream.spark.start(
            errors,
            servers=servers,
            topic="errors-by-minute",
            checkpoint=checkpoint,
            output_mode="update",
            key=f.concat_ws(" ", "minute", "service"),
            value_format="json",
            trigger="available_now",
        ).awaitTermination()
    found = [json.loads(value) for value in arrow.read(servers, "errors-by-minute")["value"].to_pylist()]
    return {(each["minute"], each["service"]): each["errors"] for each in found}


def main() -> None:
    with Broker() as broker:
        spark = millstream.spark.session("local[2]", log_level="ERROR", settings={"spark.sql.session.timeZone": "UTC"})
        for (minute, service), errors in sorted(run(spark, broker.bootstrap_servers).items()):
            print(f"{minute}  {service:<10} {errors:>3} errors")
        spark.stop()


if __name__ == "__main__":
    main()
