"""Batch reads: the columns and places of Spark's Kafka source."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from millstream import arrow
from millstream.client.admin import raise_first
from millstream.client.admin.topics import delete_records
from millstream.client.sync import SyncClient
from tests.support.topics import until_settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    Load = Callable[..., DataFrame]
    MakeTopic = Callable[..., str]


def fill(bootstrap: str, topic: str, numbers: range, *, partitions: int) -> None:
    """Number n as the value of a record in partition n % partitions, n ms after 1970."""
    rows = {
        "key": [str(number).encode() if number % 2 else None for number in numbers],
        "value": [str(number).encode() for number in numbers],
        "timestamp": pa.array(list(numbers), pa.int64()),
        "where": pa.array([number % partitions for number in numbers], pa.int32()),
    }
    arrow.write(bootstrap, topic, pa.table(rows), partition_by="where")


def numbers_in(rows: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in rows.select("value").collect())


def test_columns_are_those_of_sparks_kafka_source(load: Load, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    headers = [[("a", b"1"), ("b", None)], None, []]
    rows = {
        "key": [b"k", None, b""],
        "value": [b"v", None, b""],
        "headers": pa.array(headers, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        "timestamp": pa.array([1_784_109_600_123] * 3, pa.int64()),
        "where": pa.array([1, 1, 1], pa.int32()),
    }
    arrow.write(bootstrap, topic, pa.table(rows), partition_by="where")
    plain = load(subscribe=topic)
    assert plain.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    found = load(subscribe=topic, includeHeaders="true").orderBy("offset").collect()
    time = datetime.fromtimestamp(1_784_109_600.123, UTC).astimezone().replace(tzinfo=None)
    assert [tuple(row)[:7] for row in found] == [
        (b"k", b"v", topic, 1, 0, time, 0),
        (None, None, topic, 1, 1, time, 0),
        (b"", b"", topic, 1, 2, time, 0),
    ]
    assert [(header.key, header.value) for header in found[0].headers] == [("a", b"1"), ("b", None)]
    assert found[1].headers is None


def test_topics_are_chosen_in_three_ways(load: Load, bootstrap: str, make_topic: MakeTopic) -> None:
    first, second = make_topic(partitions=2), make_topic(partitions=1, suffix="-b")
    fill(bootstrap, first, range(10), partitions=2)
    fill(bootstrap, second, range(10, 14), partitions=1)
    assert numbers_in(load(subscribe=f"{first}, {second}")) == list(range(14))
    assert numbers_in(load(subscribePattern=f"{first}.*")) == list(range(14))
    assert numbers_in(load(subscribePattern=first)) == list(range(10))
    assert numbers_in(load(assign={first: [1], second: [0]})) == [1, 3, 5, 7, 9, 10, 11, 12, 13]
    assert load(subscribePattern=f"{first}-nothing.*").count() == 0


def test_reading_starts_and_ends_where_it_is_told(load: Load, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    fill(bootstrap, topic, range(100), partitions=2)
    offsets = {"startingOffsets": {topic: {"0": 5, "1": -2}}, "endingOffsets": {topic: {"0": -1, "1": 3}}}
    assert numbers_in(load(subscribe=topic, **offsets)) == sorted([*range(10, 100, 2), 1, 3, 5])
    times = {"startingTimestamp": "20", "endingTimestamp": "31"}
    assert numbers_in(load(subscribe=topic, **times)) == list(range(20, 31))
    each = {
        "startingOffsetsByTimestamp": {topic: {"0": 90, "1": 94}},
        "endingOffsetsByTimestamp": {topic: {"0": 94, "1": 1000}},
    }
    assert numbers_in(load(subscribe=topic, **each)) == [90, 92, 95, 97, 99]
    late = load(subscribe=topic, startingTimestamp="1000", startingOffsetsByTimestampStrategy="latest")
    assert late.count() == 0
    with pytest.raises(PySparkException, match="startingOffsetsByTimestampStrategy=latest"):
        load(subscribe=topic, startingTimestamp="1000").count()
    with pytest.raises(PySparkException, match=r"says nothing about topic .* partition 1; startingTimestamp is one"):
        load(subscribe=topic, startingOffsetsByTimestamp={topic: {"0": 5}}).count()
    with pytest.raises(PySparkException, match=r"says nothing about topic .* partition 1; -2 is earliest"):
        load(subscribe=topic, startingOffsets={topic: {"0": 5}}).count()


def test_ranges_are_cut_into_as_many_tasks_as_asked(load: Load, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    fill(bootstrap, topic, range(100), partitions=2)
    assert load(subscribe=topic).rdd.getNumPartitions() == 2
    cut = load(subscribe=topic, minPartitions="5")
    assert cut.rdd.getNumPartitions() == 5
    assert numbers_in(cut) == list(range(100))
    assert load(subscribe=topic, maxRecordsPerPartition="10").rdd.getNumPartitions() == 10


def test_a_schema_leaves_out_columns_and_nothing_else(
    spark: object, load: Load, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fill(bootstrap, topic, range(5), partitions=1)
    reader = spark.read.format("millstream").option("kafka.bootstrap.servers", bootstrap)  # type: ignore[attr-defined]
    rows = reader.schema("offset bigint, value binary").option("subscribe", topic).load()
    assert [tuple(row) for row in rows.orderBy("offset").collect()] == [(n, str(n).encode()) for n in range(5)]
    with pytest.raises(PySparkException, match="has no column 'price'"):
        reader.schema("price bigint").option("subscribe", topic).load().count()


def test_expired_offsets_fail_or_are_left_out(load: Load, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    fill(bootstrap, topic, range(20), partitions=1)
    with SyncClient({"bootstrap.servers": bootstrap}) as client:
        raise_first(client.run(delete_records, {(topic, 0): 12}))
    places = {"subscribe": topic, "startingOffsets": {topic: {"0": 5}}}
    with pytest.raises(PySparkException, match="should be read from offset 5, but it holds offsets 12 to 20"):
        load(**places).count()
    assert numbers_in(load(**places, failOnDataLoss="false")) == list(range(12, 20))


def test_only_committed_records_are_seen_by_those_who_ask(load: Load, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    arrow.write(bootstrap, topic, pa.table({"value": [b"1"]}), transactional_id=topic)

    def broken() -> object:
        yield pa.table({"value": [b"2"]})
        raise InterruptedError

    with pytest.raises(InterruptedError):
        arrow.write(bootstrap, topic, broken(), transactional_id=topic)
    arrow.write(bootstrap, topic, pa.table({"value": [b"3"]}), transactional_id=topic)
    until_settled(bootstrap, topic)
    assert numbers_in(load(subscribe=topic, kafka_isolation_level="read_committed")) == [1, 3]
    assert numbers_in(load(subscribe=topic)) == [1, 2, 3]


def test_what_is_wrong_is_said_in_a_sentence(load: Load, make_topic: MakeTopic, fresh_name: str) -> None:
    with pytest.raises(PySparkException, match=r"there is no option startingoffset, did you mean startingOffsets\?"):
        load(subscribe="x", startingOffset="earliest").count()
    with pytest.raises(PySparkException, match="there is no such topic or partition"):
        load(subscribe=fresh_name + "-missing").count()
