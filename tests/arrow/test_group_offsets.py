"""A group's offsets: read from, written to, and the same for everyone else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Assigned

from millstream import arrow
from millstream.client.errors import Refusal

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


def test_offsets_of_a_topic_that_does_not_exist_are_refused_at_once(bootstrap: str, topic: str) -> None:
    # The client's patience is a minute, and a test's is not.
    options = {"bootstrap.servers": bootstrap, "api.timeout.ms": 600_000}
    with pytest.raises(Refusal, match="UNKNOWN_TOPIC_OR_PARTITION"):
        arrow.commit(options, topic, {(f"{topic}-missing", 0): 3})
    with pytest.raises(Refusal, match="there is no partition 1"):
        arrow.commit(options, topic, {(topic, 1): 3})
