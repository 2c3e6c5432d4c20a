"""A table as records: each row once, in its partition, in order."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Assigned

from millstream import arrow
from millstream.arrow.encoding import Names
from millstream.arrow.writer import Writer
from millstream.client.admin import raise_first
from millstream.client.admin.topics import create_partitions
from millstream.client.errors import Refusal
from millstream.client.produce import ALL_IN_SYNC
from millstream.client.sync import SyncClient
from millstream.records.codecs import Codec
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.client.client import Client
    from millstream.client.metadata import Topic

VALUES_ONLY = Names(key=None, value="value", headers=None, timestamp=None)


def rows(table: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    """Rows in the order of their partition and offset."""
    ordered = table.sort_by([("partition", "ascending"), ("offset", "ascending")])
    return [tuple(row.values()) for row in ordered.select(list(columns)).to_pylist()]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_written_is_read_back(bootstrap: str, topic: str, compression: Any) -> None:
    two: list[dict[str, Any]] = [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]
    headers = [None, [], two]
    table = pa.table(
        {
            "key": pa.array([None, b"", b"k"] * 1000, pa.binary()),
            "value": pa.array([b"", None, b"v" * 300] * 1000, pa.binary()),
            "headers": pa.array(headers * 1000, arrow.SCHEMA.field("headers").type),
            "timestamp": pa.array(range(3000), pa.timestamp("ms", tz="UTC")),
        }
    )
    written = arrow.write(bootstrap, topic, table, compression=compression, batch_bytes=10_000)
    assert written == {(topic, 0): arrow.Written(first_offset=0, last_offset=2999, records=3000)}
    found = arrow.read(bootstrap, topic)
    for column in ("key", "value", "timestamp"):
        assert found.column(column).to_pylist() == table.column(column).to_pylist()
    assert found.column("headers").to_pylist() == [each or None for each in headers] * 1000


def test_librdkafka_reads_what_is_written(bootstrap: str, topic: str) -> None:
    pairs = [[{"key": "h", "value": b"1"}, {"key": "n", "value": None}], None]
    table = pa.table({"key": ["a", None], "value": ["ä", None], "headers": pairs, "timestamp": [7, 8]})
    arrow.write(bootstrap, topic, table, compression="zstd")
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    consumer.assign([Assigned(topic, 0, 0)])
    messages = consumer.consume(2, 30)
    consumer.close()
    assert [(each.key(), each.value(), each.timestamp()[1]) for each in messages] == [
        (b"a", "ä".encode(), 7),
        (None, None, 8),
    ]
    assert [each.headers() for each in messages] == [[("h", b"1"), ("n", None)], None]


def test_a_key_lands_where_librdkafkas_murmur2_sends_it(bootstrap: str, make_topic: Callable[..., str]) -> None:
    ours, theirs = make_topic(7, "-ours"), make_topic(7, "-theirs")
    keys = [b"key-%d" % index for index in range(500)]
    arrow.write(bootstrap, ours, pa.table({"key": keys, "value": keys}))
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(theirs, key, key)
    producer.flush(90)
    columns = ("key", "partition")
    assert sorted(rows(arrow.read(bootstrap, ours), *columns)) == sorted(rows(arrow.read(bootstrap, theirs), *columns))


def test_rows_without_a_key_fill_batches_and_reach_every_partition(
    bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(4)
    table = pa.table({"value": [b"x" * 100] * 3570})
    written = arrow.write(bootstrap, topic, table, batch_bytes=50_000)
    assert sorted(written) == [(topic, index) for index in range(4)]
    # 3,570 rows are eight batches: whole ones, two for each partition.
    assert all(880 <= each.records <= 900 for each in written.values())


def test_rows_take_turns_when_told_to(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(3)
    written = arrow.write(bootstrap, topic, pa.table({"value": [b"x"] * 300}), partition_by="round_robin")
    assert [each.records for each in written.values()] == [100, 100, 100]


def test_a_column_or_a_function_chooses_and_null_leaves_it_to_the_key(
    bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(4)
    keys = ["a", "b", "c", "d", "e"]
    table = pa.table({"key": keys, "value": keys, "place": [3, None, 0, None, 3]})
    arrow.write(bootstrap, topic, table, partition_by="place")
    by_key = dict(rows(arrow.read(bootstrap, topic), "key", "partition"))
    assert (by_key[b"a"], by_key[b"c"], by_key[b"e"]) == (3, 0, 3)
    other = make_topic(4, "-function")

    def last_for_null(batch: pa.RecordBatch, partitions: int) -> pa.Array:
        return pc.fill_null(batch.column("place"), partitions - 1)

    arrow.write(bootstrap, other, table, partition_by=last_for_null)
    chosen = dict(rows(arrow.read(bootstrap, other), "key", "partition"))
    assert chosen == {b"a": 3, b"b": 3, b"c": 0, b"d": 3, b"e": 3}
    plain = make_topic(4, "-plain")
    arrow.write(bootstrap, plain, table)
    hashed = dict(rows(arrow.read(bootstrap, plain), "key", "partition"))
    assert (by_key[b"b"], by_key[b"d"]) == (hashed[b"b"], hashed[b"d"])


@pytest.mark.parametrize("place", [-1, 2, 99])
def test_a_partition_that_does_not_exist_is_refused(bootstrap: str, make_topic: Callable[..., str], place: int) -> None:
    topic = make_topic(2)
    table = pa.table({"value": [b"a"], "place": [place]})
    with pytest.raises(ValueError, match=f"partition {place}"):
        arrow.write(bootstrap, topic, table, partition_by="place")
    with pytest.raises(ValueError, match="2 partitions for 1 rows"):
        arrow.write(bootstrap, topic, table, partition_by=lambda *_: pa.array([0, 0]))


def test_a_partition_that_came_later_is_learnt_of_when_a_row_is_for_it(bootstrap: str, topic: str) -> None:
    """As where a driver has looked the topic up anew, and a worker's client has known it for long."""
    row = pa.record_batch({"value": [b"x"], "place": pa.array([0], pa.int32())})
    later = row.set_column(1, "place", pa.array([1], pa.int32()))
    with SyncClient({"bootstrap.servers": bootstrap}) as client, SyncClient({"bootstrap.servers": bootstrap}) as admin:

        def partitions() -> int:
            admin.client.metadata.forget(topic)
            return len(admin.run(topic_named, topic).partitions)

        writer = Writer(client, codec=Codec.NONE, acks=ALL_IN_SYNC, partition_by="place")
        writer.write(topic, row, VALUES_ONLY)
        raise_first(admin.run(create_partitions, {topic: 2}))
        wait_until(lambda: partitions() == 2, "the new partition")
        writer.write(topic, later, VALUES_ONLY)
        assert {place: each.records for place, each in writer.finish().items()} == {(topic, 0): 1, (topic, 1): 1}
        with pytest.raises(ValueError, match="row 0 is for partition 2, but there are 2"):
            writer.write(topic, row.set_column(1, "place", pa.array([2], pa.int32())), VALUES_ONLY)


async def topic_named(client: Client, name: str) -> Topic:
    return await client.metadata.topic(name)


def test_every_shape_of_data_is_taken(bootstrap: str, topic: str) -> None:
    batch = pa.record_batch({"value": [b"a", b"b"]})

    def one_by_one() -> Iterator[pa.RecordBatch]:
        yield batch
        yield batch.slice(0, 0)
        yield batch.slice(1)

    class Foreign:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.Table.from_batches([batch]).__arrow_c_stream__(requested_schema)

    shapes = [batch, pa.Table.from_batches([batch] * 20), one_by_one(), Foreign(), [pa.table({"value": [b"c"]})], []]
    counts = []
    for data in shapes:
        written = arrow.write(bootstrap, topic, data)
        counts.append(sum(each.records for each in written.values()))
    assert counts == [2, 40, 3, 2, 1, 0]
    assert arrow.read(bootstrap, topic).num_rows == 48
    with pytest.raises(TypeError, match="a dict cannot be written"):
        arrow.write(bootstrap, topic, {"value": [b"a"]})


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.string(), pa.large_binary(), pa.large_string(), pa.binary_view(), pa.string_view(), pa.binary(2)],
    ids=str,
)
def test_every_type_of_bytes_and_text_is_taken(bootstrap: str, topic: str, kind: pa.DataType) -> None:
    values = pa.array(["zz", "aa", None, "bb"], pa.string()).cast(pa.binary()).cast(kind).slice(1)
    arrow.write(bootstrap, topic, pa.table({"value": values}))
    encoded = pa.array(["cc", "cc", None]).dictionary_encode()
    arrow.write(bootstrap, topic, pa.table({"value": encoded, "key": pa.nulls(3)}))
    assert arrow.read(bootstrap, topic).column("value").to_pylist() == [b"aa", None, b"bb", b"cc", b"cc", None]


def test_headers_come_as_lists_or_maps(bootstrap: str, topic: str) -> None:
    as_map = pa.array([[("a", b"1")], None, [("b", None)]], pa.map_(pa.string(), pa.binary())).slice(1)
    arrow.write(bootstrap, topic, pa.table({"value": ["x", "y"], "headers": as_map}))
    as_large = pa.array([[{"k": "c", "v": "2"}]], pa.large_list(pa.struct([("k", pa.string()), ("v", pa.string())])))
    arrow.write(bootstrap, topic, pa.table({"value": ["z"], "tags": as_large}), headers="tags")
    assert arrow.read(bootstrap, topic).column("headers").to_pylist() == [
        None,
        [{"key": "b", "value": None}],
        [{"key": "c", "value": b"2"}],
    ]
    with pytest.raises(TypeError, match=r"headers are a list of .* not list<item: string>"):
        arrow.write(bootstrap, topic, pa.table({"value": ["z"], "headers": [["a"]]}))
    nameless = pa.array([[{"key": None, "value": b"x"}]], arrow.SCHEMA.field("headers").type)
    with pytest.raises(ValueError, match="a header has no key"):
        arrow.write(bootstrap, topic, pa.table({"value": ["z"], "headers": nameless}))


def test_times_of_any_unit_become_milliseconds_and_null_is_now(bootstrap: str, topic: str) -> None:
    for unit, scale in (("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)):
        times = pa.array([0, 5 * scale], pa.timestamp(unit)).slice(1)
        arrow.write(bootstrap, topic, pa.table({"value": ["x"], "when": times}), timestamp="when")
    arrow.write(bootstrap, topic, pa.table({"value": ["x"], "timestamp": pa.array([None], pa.int64())}))
    found = arrow.read(bootstrap, topic).column("timestamp").cast(pa.int64()).to_pylist()
    assert found[:4] == [5000] * 4
    assert found[4] > 1_700_000_000_000


def test_a_missing_column_is_named(bootstrap: str, topic: str) -> None:
    table = pa.table({"value": [b"a"], "number": [1]})
    with pytest.raises(ValueError, match="no column 'id', the data has 'value', 'number'"):
        arrow.write(bootstrap, topic, table, key="id")
    with pytest.raises(ValueError, match="no column 'value'"):
        arrow.write(bootstrap, topic, table.select(["number"]))
    with pytest.raises(TypeError, match="column 'number' holds int64"):
        arrow.write(bootstrap, topic, table, value="number")
    with pytest.raises(ValueError, match="no compression 'brotli'"):
        arrow.write(bootstrap, topic, table, compression="brotli")  # type: ignore[arg-type]
    arrow.write(bootstrap, topic, table, key="value", value=None)
    assert arrow.read(bootstrap, topic, columns=["key", "value"]).to_pylist() == [{"key": b"a", "value": None}]


def test_the_topic_may_be_a_column(bootstrap: str, make_topic: Callable[..., str]) -> None:
    one, two = make_topic(1, "-one"), make_topic(1, "-two")
    table = pa.table({"value": ["a", "b", "c"], "topic": [one, two, one]})
    arrow.write(bootstrap, None, table)
    assert arrow.read(bootstrap, one).column("value").to_pylist() == [b"a", b"c"]
    assert arrow.read(bootstrap, two).column("value").to_pylist() == [b"b"]
    with pytest.raises(ValueError, match="no column 'topic'"):
        arrow.write(bootstrap, None, table.select(["value"]))


def test_arguments_come_as_people_write_them(bootstrap: str, topic: str) -> None:
    arrow.write(bootstrap=[bootstrap], topic=topic, table_or_batches=pa.table({"value": ["a"]}), compression=None)
    found = arrow.read(bootstrap=(bootstrap,), topic=topic, columns="value", start=np.int64(0), partitions=0)
    assert found.to_pylist() == [{"value": b"a"}]


def test_a_record_larger_than_a_batch_gets_its_own(bootstrap: str, topic: str) -> None:
    sizes = [10, 50_000, 10, 10, 60_000]
    arrow.write(bootstrap, topic, pa.table({"value": [b"x" * size for size in sizes]}), batch_bytes=1000)
    assert [len(value) for value in arrow.read(bootstrap, topic).column("value").to_pylist()] == sizes
    with pytest.raises(Refusal, match="MESSAGE_TOO_LARGE"):
        arrow.write(bootstrap, topic, pa.table({"value": [b"x" * 3_000_000]}))


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_as_small_as_the_topic_wants_them(
    bootstrap: str, make_topic: Callable[..., str], compression: Any
) -> None:
    small, large = make_topic(max_message_bytes="20000"), make_topic(suffix="-large")
    # Nothing to compress, which makes batches larger than what they are made of.
    values = [random.Random(number).randbytes(1000) for number in range(100)]
    topics = [small, large] * 50
    written = arrow.write(bootstrap, None, pa.table({"value": values, "topic": topics}), compression=compression)
    assert {place: each.records for place, each in written.items()} == {(small, 0): 50, (large, 0): 50}
    assert arrow.read(bootstrap, small, columns=["value"])["value"].to_pylist() == values[::2]


@pytest.mark.parametrize("acks", ["all", -1, 0, 1])
def test_order_is_kept_within_a_partition(bootstrap: str, make_topic: Callable[..., str], acks: Any) -> None:
    topic = make_topic(3)
    numbers = [b"%05d" % index for index in range(20_000)]
    # With acks=0 nobody hears of a leader that is not there yet.
    arrow.write(bootstrap, topic, pa.table({"value": [b"first"] * 3}), partition_by="round_robin")
    arrow.write(bootstrap, topic, pa.table({"key": numbers, "value": numbers}), acks=acks, batch_bytes=5000)
    with arrow.stream(bootstrap, topic, start=1, idle_ms=5000) as stream:
        found: dict[int, list[bytes]] = {}
        for batch in stream:
            for value, partition in zip(*batch.select(["value", "partition"]).columns, strict=True):
                found.setdefault(partition.as_py(), []).append(value.as_py())
            if sum(map(len, found.values())) == len(numbers):
                break
    assert all(values == sorted(values) for values in found.values())
    assert Counter(value for values in found.values() for value in values) == Counter(numbers)
