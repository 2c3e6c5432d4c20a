"""Writes: rows become records with all their parts, in batches and in streams."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from millstream import arrow
from millstream.spark.starting import started

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    MakeTopic = Callable[..., str]


def save(rows: DataFrame, bootstrap: str, **options: str) -> None:
    options = {name.replace("_", "."): value for name, value in options.items()}
    writer = rows.write.format("millstream").mode("append").option("kafka.bootstrap.servers", bootstrap)
    writer.options(**options).save()


def numbers(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count, numPartitions=2).select(f.col("id").cast("string").alias("value"), "id")


def test_every_part_of_a_record_arrives(spark: SparkSession, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    rows = numbers(spark, 300).select(
        f.concat(f.lit("k"), f.col("value")).alias("key"),
        f.col("value").cast("binary").alias("value"),
        f.array(f.struct(f.lit("from").alias("key"), f.lit(b"spark").alias("value"))).alias("headers"),
        (f.col("id") % 3).cast("int").alias("partition"),
        f.timestamp_millis(f.col("id") + 1_784_109_600_000).alias("timestamp"),
        f.lit("ignored").alias("another"),
    )
    save(rows, bootstrap, topic=topic, kafka_compression_type="zstd")
    found = arrow.read(bootstrap, topic)
    assert found.num_rows == 300
    for record in found.to_pylist():
        number = int(record["value"])
        assert record["key"] == f"k{number}".encode()
        assert record["partition"] == number % 3
        assert record["timestamp"].timestamp() * 1000 == pytest.approx(1_784_109_600_000 + number)
        assert record["headers"] == [{"key": "from", "value": b"spark"}]


def test_keys_go_where_javas_producer_sends_them(spark: SparkSession, bootstrap: str, make_topic: MakeTopic) -> None:
    topic, again = make_topic(partitions=5), make_topic(partitions=5, suffix="-arrow")
    save(numbers(spark, 200).select(f.col("value").alias("key"), "value"), bootstrap, topic=topic)
    written = arrow.read(bootstrap, topic, columns=["key", "value", "partition"])
    arrow.write(bootstrap, again, written.select(["key", "value"]))
    keyed = arrow.read(bootstrap, again, columns=["key", "value", "partition"])
    assert sorted(map(str, written.to_pylist())) == sorted(map(str, keyed.to_pylist()))


def test_a_column_says_the_topic_unless_the_option_does(
    spark: SparkSession, bootstrap: str, make_topic: MakeTopic
) -> None:
    topics = [make_topic(suffix=f"-{index}") for index in range(3)]
    chosen = f.when(f.col("id") % 2 == 0, topics[0]).otherwise(topics[1])
    rows = numbers(spark, 10).select("value", chosen.alias("topic"))
    save(rows, bootstrap)
    save(rows, bootstrap, topic=topics[2], kafka_batch_size="0")
    assert [arrow.read(bootstrap, topic).num_rows for topic in topics] == [5, 5, 10]


def test_what_cannot_be_written_is_refused(spark: SparkSession, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    rows = numbers(spark, 3)
    with pytest.raises(PySparkException, match="no topic is given"):
        save(rows, bootstrap)
    with pytest.raises(PySparkException, match="column 'value' must be string or binary, but is bigint"):
        save(rows.select(f.col("id").alias("value")), bootstrap, topic=topic)
    with pytest.raises(PySparkException, match="have no column 'value'"):
        save(rows.select("id"), bootstrap, topic=topic)
    with pytest.raises(PySparkException, match="did you mean topic"):
        save(rows, bootstrap, topik=topic)
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        rows.write.format("millstream").mode("overwrite").options(
            **{"kafka.bootstrap.servers": bootstrap, "topic": topic}
        ).save()
    assert arrow.read(bootstrap, topic).num_rows == 0


def test_a_stream_is_copied_from_topic_to_topic(
    spark: SparkSession,
    load_stream: Callable[..., DataFrame],
    bootstrap: str,
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=2, suffix="-copy")
    save(numbers(spark, 500).select(f.col("value").alias("key"), "value"), bootstrap, topic=source)

    def copy() -> None:
        writer = (
            load_stream(subscribe=source, maxOffsetsPerTrigger="200")
            .select("key", "value", "partition", "timestamp")
            .writeStream.format("millstream")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", target)
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
        )
        query = started(writer.start)
        query.awaitTermination(120)
        assert not query.isActive

    copy()
    columns = ["key", "value", "partition", "timestamp"]
    one, other = (arrow.read(bootstrap, topic, columns=columns).to_pylist() for topic in (source, target))
    assert Counter(map(str, one)) == Counter(map(str, other))
    save(numbers(spark, 10), bootstrap, topic=source)
    copy()
    assert arrow.read(bootstrap, target).num_rows == 510
