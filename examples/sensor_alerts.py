"""Sensor alerts: readings of many sensors, an alert when one stays too hot over a window that slides.

python examples/sensor_alerts.py
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

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TOO_HOT = 80.0
HOT_SENSOR = "boiler-2"
SENSORS = ("boiler-1", HOT_SENSOR, "boiler-3")


def readings() -> pa.Table:
    """A minute of three sensors, one reading a second; one of them gets hot half way, one has a single peak."""
    rows = []
    for second in range(60):
        for sensor in SENSORS:
            hot = sensor == HOT_SENSOR and second >= 30
            peak = sensor == "boiler-3" and second == 20
            rows.append((sensor, 95.0 if hot or peak else 60.0, START + timedelta(seconds=second)))
    return pa.table(
        {
            "key": [sensor for sensor, _, _ in rows],
            "value": [json.dumps({"celsius": celsius}) for _, celsius, _ in rows],
            "timestamp": [at for _, _, at in rows],
        }
    )


def run(spark: SparkSession, servers: str) -> list[dict[str, object]]:
    """The alerts in the output topic."""
    arrow.write(servers, "readings", readings())
    records = (
        spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "readings")
        .option("startingOffsets", "earliest")
        .load()
    )
    typed = millstream.spark.typed(records, "celsius double", keep=["key", "timestamp"]).rows
    alerts = (
        typed.withColumn("sensor", f.col("key").cast("string"))
        .withWatermark("timestamp", "10 seconds")
        .groupBy(f.window("timestamp", "10 seconds", "5 seconds"), "sensor")
        .agg(f.avg("celsius").alias("mean"))
        .where(f.col("mean") > TOO_HOT)
        .select("sensor", "mean", f.date_format("window.end", "HH:mm:ss").alias("until"))
    )
    with TemporaryDirectory() as checkpoint:
        millstream.spark.start(
            alerts,
            servers=servers,
            topic="alerts",
            checkpoint=checkpoint,
            output_mode="update",
            key=f.col("sensor"),
            value_format="json",
            trigger="available_now",
        ).awaitTermination()
    return [json.loads(value) for value in arrow.read(servers, "alerts")["value"].to_pylist()]


def main() -> None:
    with Broker() as broker:
        spark = millstream.spark.session("local[2]", log_level="ERROR", settings={"spark.sql.session.timeZone": "UTC"})
        for alert in sorted(run(spark, broker.bootstrap_servers), key=lambda each: str(each["until"])):
            print(f"{alert['until']}  {alert['sensor']} has {alert['mean']} degrees on average")
        spark.stop()


if __name__ == "__main__":
    main()
