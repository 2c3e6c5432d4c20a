"""State as cached rows, and how it is read back from a changelog.

A snapshot is cut off from how it was computed: otherwise each micro-batch's plan would contain all before it. If Spark
loses a part of it, with an executor, the micro-batch fails, and is tried again from the changelogs, which are the
durable store.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millstream.streams.lower.native.pruning import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from millstream.client.grouping import TopicPartition
    from millstream.streams.lower.sinking import Span


def cut_off(rows: DataFrame) -> DataFrame:
    """The rows, computed once by the first who asks and kept, without their history."""
    return rows.localCheckpoint(eager=False)


def sorted_by(rows: DataFrame, columns: list[str]) -> DataFrame:
    """Cut off, and lying where rows that are moved and sorted by these columns come to look for them."""
    partitions = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 2)
    return cut_off(rows.repartition(partitions, *columns).sortWithinPartitions(*columns))


def forget(rows: DataFrame | None) -> None:
    """Let go of what `cut_off` keeps."""
    if rows is not None:
        plan: Any = rows._jdf.queryExecution().logical()
        plan.rdd().unpersist(False)  # noqa: FBT003  # Py4J takes no keywords


def read_span(
    spark: SparkSession, names: list[str], span: Span, connection: Mapping[str, str], columns: tuple[str, ...]
) -> DataFrame:
    """These columns of the records of topics in a micro-batch."""
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for (name, index), end in sorted(span.ends.items()):
        if name in names:
            starts.setdefault(name, {})[str(index)] = span.starts.get((name, index), 0)
            ends.setdefault(name, {})[str(index)] = end
    reader = spark.read.format("millstream").options(**{f"kafka.{name}": value for name, value in connection.items()})
    reader = reader.option("subscribe", ",".join(starts)).option("includeHeaders", "true").schema(schema_of(columns))
    reader = reader.option("startingOffsets", json.dumps(starts)).option("endingOffsets", json.dumps(ends))
    return reader.option("kafka.isolation.level", "read_committed").load()


def read_topic(
    spark: SparkSession, topic: str, ends: Mapping[TopicPartition, int], options: Mapping[str, str]
) -> DataFrame:
    """The last record of each key in each partition of a topic, up to these offsets: key, value and time as bytes.

    `options` say how it is read (reading_options)."""
    from pyspark.sql import functions as f

    until = {str(index): end for (name, index), end in sorted(ends.items()) if name == topic}
    rows = (
        spark.read.format("millstream")
        .options(**options)
        .option("endingOffsets", json.dumps({topic: until}))
        .load()
        .where(f.col("key").isNotNull())
    )
    last = f.max_by(f.struct("value", f.unix_millis("timestamp").alias("timestamp")), "offset").alias("last")
    return rows.groupBy("partition", "key").agg(last).select("partition", "key", "last.value", "last.timestamp")
