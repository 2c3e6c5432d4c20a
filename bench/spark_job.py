"""Runs inside a Spark environment: reads one JSON call a line and answers each with one JSON line.

    python spark_job.py <millstream | kafka> <bootstrap servers> <jars, comma separated> <scratch folder>

The same queries through either connector: for `kafka` the interpreter has PySpark 4.0.0 and nothing of ours.
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
    from millstream import spark as millstream_spark

    spark = millstream_spark.session("local[2]", settings=settings, log_level="ERROR")
else:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**settings, "spark.driver.extraClassPath": jars.replace(",", ":")}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")


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


CALLS: dict[str, Callable[..., Any]] = {"scan": scan, "copy": copy}

for line in sys.stdin:
    call = json.loads(line)
    try:
        answer = {"ok": CALLS[call.pop("call")](**call)}
    except Exception as failure:  # noqa: BLE001  # whatever Spark raises is the caller's to judge
        answer = {"failed": str(failure)[:4000]}
    print(json.dumps(answer), flush=True)
