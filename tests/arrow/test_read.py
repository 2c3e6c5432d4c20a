"""A topic as a table: every record as it was written, and only those that were asked for."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer

from millstream import arrow
from millstream.client.errors import BadOption, ClientError, CorruptBatch, NeverReached, Refusal
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.arrow.conftest import Cluster

NOON = 1_700_000_000_000


def produce(bootstrap: str, topic: str, *values: bytes | None, **settings: str) -> None:
    """Records from librdkafka: the key is the position, the time a second later each."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, **settings})
    for index, value in enumerate(values):
        producer.produce(topic, value, str(index).encode(), 0, timestamp=NOON + 1000 * index)
    assert producer.flush(90) == 0


def values(table: pa.Table) -> list[bytes | None]:
    found: list[bytes | None] = table.column("value").to_pylist()
    return found


def test_a_record_has_the_columns_of_sparks_source(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"v", b"k", 0, timestamp=NOON, headers=[("a", b"1"), ("a", None), ("", b"")])
    producer.flush(90)
    table = arrow.read(bootstrap, topic)
    assert table.schema == arrow.SCHEMA
    assert table.to_pylist() == [
        {
            "key": b"k",
            "value": b"v",
            "topic": topic,
            "partition": 0,
            "offset": 0,
            "timestamp": datetime.fromtimestamp(NOON / 1000, UTC),
            "timestampType": 0,
            "headers": [{"key": "a", "value": b"1"}, {"key": "a", "value": None}, {"key": "", "value": b""}],
        }
    ]


def test_null_and_empty_stay_apart(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value in ((None, None), (b"", b""), (b"k", None), (None, b"v")):
        producer.produce(topic, value, key, 0)
    producer.flush(90)
    table = arrow.read(bootstrap, topic, columns=["key", "value", "headers"])
    assert table.column("key").to_pylist() == [None, b"", b"k", None]
    assert table.column("value").to_pylist() == [None, b"", None, b"v"]
    assert table.column("headers").to_pylist() == [None] * 4


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read(bootstrap: str, topic: str, codec: str) -> None:
    written = [b"%d " % index * (index % 50) for index in range(2000)]
    produce(bootstrap, topic, *written, **{"compression.type": codec})
    table = arrow.read(bootstrap, topic)
    table.validate(full=True)
    assert values(table) == written
    assert table.column("offset").to_pylist() == list(range(2000))


def test_answers_that_end_within_a_batch_are_read_on(bootstrap: str, topic: str) -> None:
    written = [b"x" * (index % 997) for index in range(3000)]
    produce(bootstrap, topic, *written, **{"batch.size": "4000"})
    with arrow.stream(bootstrap, topic, end="latest", fetch_bytes=5000, partition_bytes=5000) as stream:
        batches = list(stream)
    assert len(batches) > 100
    assert values(pa.Table.from_batches(batches)) == written


def test_a_batch_larger_than_the_limit_is_read(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(2)
    large = pa.table({"value": [b"x" * 50_000, b"y" * 50_000], "partition": [0, 1]})
    arrow.write(bootstrap, topic, large, partition_by="partition")
    with arrow.stream(bootstrap, topic, end="latest", fetch_bytes=100, partition_bytes=100) as stream:
        assert sorted(len(value) for batch in stream for value in batch.column("value").to_pylist()) == [50_000] * 2


def test_only_the_columns_asked_for_come_in_their_order(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, b"a", b"b")
    table = arrow.read(bootstrap, topic, columns=["offset", "value"])
    assert table.to_pylist() == [{"offset": 0, "value": b"a"}, {"offset": 1, "value": b"b"}]
    assert arrow.read(bootstrap, topic, columns=["partition"]).num_rows == 2
    with pytest.raises(ValueError, match="no column 'body'"):
        arrow.read(bootstrap, topic, columns=["body"])
    with pytest.raises(ValueError, match="twice"):
        arrow.read(bootstrap, topic, columns=["key", "key"])


def test_an_empty_topic_is_an_empty_table(bootstrap: str, topic: str) -> None:
    table = arrow.read(bootstrap, topic)
    assert (table.num_rows, table.schema) == (0, arrow.SCHEMA)


def test_a_range_of_offsets_is_cut_like_a_slice(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, *(b"%d" % index for index in range(10)))
    assert values(arrow.read(bootstrap, topic, start=3, end=5)) == [b"3", b"4"]
    assert values(arrow.read(bootstrap, topic, start={0: 8}, end={(topic, 0): 100})) == [b"8", b"9"]
    assert values(arrow.read(bootstrap, topic, start=-2, end=-1)) == [b"%d" % index for index in range(10)]
    assert values(arrow.read(bootstrap, topic, start=50)) == []
    assert values(arrow.read(bootstrap, topic, start="latest")) == []


def test_a_range_of_times_is_found(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, *(b"%d" % index for index in range(10)))

    def at(second: float) -> datetime:
        return datetime.fromtimestamp(NOON / 1000 + second, UTC)

    assert values(arrow.read(bootstrap, topic, start=at(2.5), end=at(5))) == [b"3", b"4"]
    assert values(arrow.read(bootstrap, topic, start=at(8), end=at(1000))) == [b"8", b"9"]
    assert values(arrow.read(bootstrap, topic, start=at(1000))) == []
    with pytest.raises(ValueError, match="time zone"):
        arrow.read(bootstrap, topic, start=datetime(2024, 1, 1))  # noqa: DTZ001


def test_the_brokers_time_is_told_from_the_producers(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    produce(bootstrap, topic, b"a", b"b")
    table = arrow.read(bootstrap, topic)
    assert table.column("timestampType").to_pylist() == [1, 1]
    assert all(time.timestamp() * 1000 > NOON + 10**9 for time in table.column("timestamp").to_pylist())


def test_several_topics_and_patterns_are_read_together(bootstrap: str, make_topic: Callable[..., str]) -> None:
    one, two, other = make_topic(2, "-one"), make_topic(1, "-two"), make_topic(1, "-other")
    for topic in (one, two, other):
        produce(bootstrap, topic, topic.encode())
    prefix = one.removesuffix("one")

    def topics_of(table: pa.Table) -> list[str]:
        return sorted(table.column("topic").to_pylist())

    assert topics_of(arrow.read(bootstrap, [one, other])) == sorted([one, other])
    assert topics_of(arrow.read(bootstrap, re.compile(prefix + "(one|two)$"))) == sorted([one, two])
    assert topics_of(arrow.read(bootstrap, f"^{prefix}.*")) == sorted([one, two, other])
    assert topics_of(arrow.read(bootstrap, f"^{prefix}nothing")) == []
    with pytest.raises(ValueError, match="of which topic"):
        arrow.read(bootstrap, [one, two], start={0: 0})


def test_only_the_partitions_asked_for_are_read(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(3)
    table = pa.table({"value": [b"a", b"b", b"c"], "partition": [0, 1, 2]})
    arrow.write(bootstrap, topic, table, partition_by="partition")
    assert sorted(values(arrow.read(bootstrap, topic, partitions=[0, 2]))) == [b"a", b"c"]
    assert values(arrow.read(bootstrap, topic, partitions=[(topic, 1)])) == [b"b"]
    with pytest.raises(Refusal, match="no partition 7"):
        arrow.read(bootstrap, topic, partitions=[7])
    with pytest.raises(ValueError, match="not among the partitions"):
        arrow.read(bootstrap, topic, partitions=[0], start={1: 0})


def test_a_dead_first_server_does_no_harm(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, b"a")
    (dead,) = free_ports(1)
    assert values(arrow.read(f"127.0.0.1:{dead},{bootstrap}", topic)) == [b"a"]
    assert values(arrow.read({"bootstrap.servers": f"127.0.0.1:{dead},{bootstrap}"}, topic)) == [b"a"]
    with pytest.raises(NeverReached):
        arrow.read(f"127.0.0.1:{dead}", topic)


def test_what_makes_no_sense_is_refused(bootstrap: str, topic: str) -> None:
    with pytest.raises(Refusal, match=f"'{topic}-not': there is no such topic"):
        arrow.read(bootstrap, f"{topic}-not")
    with pytest.raises(BadOption):
        arrow.read("", topic)
    with pytest.raises(ValueError, match="isolation"):
        arrow.read(bootstrap, topic, isolation="serializable")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no offset"):
        arrow.read(bootstrap, topic, start=-7)
    with pytest.raises(ValueError, match="no place in a topic"):
        arrow.read(bootstrap, topic, start="somewhere")  # type: ignore[arg-type]


def test_an_offset_that_is_gone_is_an_error(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, b"a")
    with arrow.stream(bootstrap, topic, start=5) as stream, pytest.raises(ClientError, match="OFFSET_OUT_OF_RANGE"):
        next(stream)


def test_a_corrupt_batch_is_named(cluster: Cluster, topic: str) -> None:
    """Bug 31, KAFKA-5211: a flipped bit is an error, and again at the next try; nothing is passed over."""
    bootstrap = cluster.bootstrap_servers
    for value in (b"first", b"second", b"third"):
        produce(bootstrap, topic, value)
    segment = cluster.data_directory / f"{topic}-0" / "00000000000000000000.log"
    at = segment.read_bytes().index(b"second")
    with segment.open("r+b") as file:
        file.seek(at)
        file.write(b"SECOND")
    for _ in range(2):
        with pytest.raises(CorruptBatch, match=re.escape(f"topic '{topic}' partition 0 offset 1: the CRC")) as caught:
            arrow.read(bootstrap, topic)
        assert (caught.value.topic, caught.value.partition, caught.value.offset) == (topic, 0, 1)
    assert values(arrow.read(bootstrap, topic, start=2)) == [b"third"]


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [(np.int64(1), [1]), (np.array([1, 2]), [1, 2]), ([np.int32(2)], [2]), (range(2), [0, 1]), (1, [1])],
    ids=str,
)
def test_partitions_come_as_numpy_has_them(
    bootstrap: str, make_topic: Callable[..., str], partitions: Any, expected: list[int]
) -> None:
    topic = make_topic(3)
    arrow.write(bootstrap, topic, pa.table({"value": [b"a", b"b", b"c"]}), partition_by="round_robin")
    found = arrow.read(bootstrap, topic, partitions=partitions).column("partition").to_pylist()
    assert sorted(found) == expected
    (first, *_) = expected
    assert arrow.read(bootstrap, topic, partitions=[(topic, np.int64(first))]).num_rows == 1


def test_records_can_be_counted_without_any_column(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(3)
    arrow.write(bootstrap, topic, pa.table({"value": [b"x"] * 30}), partition_by="round_robin")
    found = arrow.read(bootstrap, topic, columns=[])
    assert (found.num_rows, found.num_columns) == (30, 0)
    with arrow.stream(bootstrap, topic, columns=[], end="latest") as batches:
        assert sum(batch.num_rows for batch in batches) == 30


def test_a_time_before_1970_is_the_beginning(bootstrap: str, topic: str) -> None:
    arrow.write(bootstrap, topic, pa.table({"value": [b"a", b"b"], "timestamp": [0, 5]}))
    for milliseconds in (-1, -2, -3, -4, -5, -6, -1_000_000):
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
        assert arrow.read(bootstrap, topic, start=time).num_rows == 2
        assert arrow.read(bootstrap, topic, end=time).num_rows == 0
    behind = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=1)
    assert arrow.read(bootstrap, topic, start=behind).column("value").to_pylist() == [b"b"]
