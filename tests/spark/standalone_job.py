"""A driver on a cluster: writes, reads, and copies by a stream; prints what it saw as JSON.

python standalone_job.py <master> <bootstrap servers> <topic> <checkpoint>
"""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import functions as f

from millstream import spark as millstream_spark


def main() -> None:
    master, servers, topic, checkpoint = sys.argv[1:]
    settings = {
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        # Half a minute, the default, is short on a busy machine: the job would begin with one executor.
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "240s",
    }
    spark = millstream_spark.session(master, settings=settings, log_level="ERROR")
    options = {"kafka.bootstrap.servers": servers}
    rows = spark.range(1000, numPartitions=4).select(
        f.col("id").cast("string").alias("key"), f.col("id").cast("string").alias("value")
    )
    rows.write.format("millstream").mode("append").options(**options, topic=topic).save()
    stream = spark.readStream.format("millstream").options(
        **options, subscribe=topic, startingOffsets="earliest", minPartitions="4"
    )
    writer = (
        stream.load()
        .select("key", "value")
        .writeStream.format("millstream")
        .options(**options, topic=topic + "-copy", checkpointLocation=checkpoint)
        .trigger(availableNow=True)
    )
    millstream_spark.started(writer.start).awaitTermination()
    found = spark.read.format("millstream").options(**options, subscribe=topic + "-copy", minPartitions="4").load()
    where = found.rdd.mapPartitions(lambda _: [_executor()]).collect()
    counts = found.agg(f.count("*"), f.sum(f.col("value").cast("string").cast("bigint"))).collect()[0]
    executors, packages = (sorted(set(each)) for each in zip(*where, strict=True))
    print(json.dumps({"records": counts[0], "sum": counts[1], "executors": executors, "packages": packages}))
    spark.stop()


def _executor() -> tuple[str, str]:
    """Where it runs, each executor of a cluster in a folder of its own, and where it has the package from."""
    import millstream

    return os.getcwd(), os.path.dirname(os.path.dirname(millstream.__file__))


if __name__ == "__main__":
    main()
