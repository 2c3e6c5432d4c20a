"""A group's offsets: read from, written to, and the same for everyone else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Assigned

from millstream import arrow

if TYPE_CHECKING:
    from collections.abc import Callable


def test_what_a_group_committed_is_where_reading_starts(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(2)
    table = pa.table({"value": [b"a", b"b", b"c", b"x", b"y"], "place": [0, 0, 0, 1, 1]})
    arrow.write(bootstrap, topic, table, partition_by="place")
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    consumer.commit(offsets=[Assigned(topic, 0, 2)], asynchronous=False)
    assert arrow.committed(bootstrap, topic) == {(topic, 0): 2}

    def read(group: arrow.Group) -> list[bytes]:
        return sorted(arrow.read(bootstrap, topic, start=group).column("value").to_pylist())

    assert read(arrow.Group(topic)) == [b"c", b"x", b"y"]
    assert read(arrow.Group(topic, otherwise="latest")) == [b"c"]
    consumer.close()


def test_a_group_goes_on_where_a_stream_was_left(bootstrap: str, topic: str) -> None:
    arrow.write(bootstrap, topic, pa.table({"value": [b"a", b"b"]}))
    with arrow.stream(bootstrap, topic, end=1) as stream:
        assert [batch.column("value").to_pylist() for batch in stream] == [[b"a"]]
    arrow.commit(bootstrap, topic, stream.offsets, metadata="by a stream")
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    (found,) = consumer.committed([Assigned(topic, 0)], 30)
    assert (found.offset, found.metadata) == (1, "by a stream")
    consumer.close()
    assert arrow.read(bootstrap, topic, start=arrow.Group(topic)).column("value").to_pylist() == [b"b"]


def test_a_group_that_nobody_knows_has_no_offsets(bootstrap: str, fresh_name: str) -> None:
    assert arrow.committed(bootstrap, fresh_name) == {}
