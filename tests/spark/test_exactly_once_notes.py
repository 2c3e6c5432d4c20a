"""Where a query notes which batches it has committed, and that it finds the notes again; without Spark.

The sink is the real one, on a real broker; a checkpoint and the writing of rows are made up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millstream.arrow.encoding import Names
from millstream.arrow.writer import Writer
from millstream.client.groups import committed_offsets
from millstream.client.produce import ALL_IN_SYNC
from millstream.client.sync import SyncClient
from millstream.records.codecs import Codec
from millstream.spark import exactly_once_sink
from millstream.spark.exactly_once_checkpoint import BatchEnd
from millstream.spark.exactly_once_sink import CheckpointMismatch, Fenced, Sink
from millstream.spark.exactly_once_sources import SourceUnknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.client.grouping import TopicPartition
    from millstream.client.transactions import Transaction

    MakeTopic = Callable[..., str]

VALUES_ONLY = Names(key=None, value="value", headers=None, timestamp=None)
ELSEWHERE = "AAAAAAAAAAAAAAAAAAAAAQ"


@dataclass
class Rows:
    """Writes one record for each batch, and remembers which."""

    servers: str
    topic: str
    written: list[int] = field(default_factory=list)

    @property
    def options(self) -> dict[str, str]:
        return {"bootstrap.servers": self.servers}

    def write(self, _batch: Any, client: SyncClient, transaction: Transaction | None, batch_id: int) -> list[Any]:
        writer = Writer(client, codec=Codec.NONE, acks=ALL_IN_SYNC, partition_by="sticky", transaction=transaction)
        writer.write(self.topic, pa.record_batch({"value": [b"%d" % batch_id]}), VALUES_ONLY)
        writer.finish()
        self.written.append(batch_id)
        return [{"topic": self.topic}]


class Query:
    """The sink of a query whose batches end where they are told to; it is its own checkpoint."""

    def __init__(self, rows: Rows, name: str, shown_in: str | None = None, **more: Any) -> None:
        self._name = name
        self._end = BatchEnd(())
        self._sink = Sink(
            rows,  # type: ignore[arg-type]  # it writes as one
            location=name,
            lag_group=shown_in,
            **{"exactly_once": True, **more},
        )

    def query_id(self) -> str:
        return self._name

    def end_of(self, _batch_id: int) -> BatchEnd:
        return self._end

    def run(self, batch_id: int, end: dict[str, Any]) -> None:
        self._end = BatchEnd((json.dumps(end),))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(exactly_once_sink, "Checkpoint", lambda *_: self)
            self._sink(SimpleNamespace(sparkSession=None), batch_id)  # type: ignore[arg-type]

    def stop(self) -> None:
        self._sink.close()


@pytest.fixture
def rows(bootstrap: str, make_topic: MakeTopic) -> Rows:
    return Rows(bootstrap, make_topic(1, "-output"))


@pytest.fixture
def query(rows: Rows) -> Iterator[Callable[..., Query]]:
    """Starts a query, the second time of the same name as after a crash."""
    started: list[Query] = []

    def start(name: str, shown_in: str | None = None, **more: Any) -> Query:
        started.append(Query(rows, name, shown_in, **more))
        return started[-1]

    yield start
    for each in started:
        each.stop()


def offsets_of(bootstrap: str, group: str, *topics: str) -> dict[TopicPartition, int]:
    """Of these topics: the answer then waits for a commit that is under way, even if it is the group's first."""
    with SyncClient({"bootstrap.servers": bootstrap}) as client:
        stored = client.run(committed_offsets, group, [(topic, 0) for topic in topics])
    return {place: each.offset for place, each in stored.items()}


def test_queries_with_one_group_do_not_lose_each_others_notes(
    bootstrap: str, make_topic: MakeTopic, rows: Rows, query: Callable[..., Query]
) -> None:
    source = make_topic(1)
    one, other, group = f"{source}-one", f"{source}-other", f"{source}-group"
    query(one, group).run(0, {source: {"0": 5}})
    assert offsets_of(bootstrap, group, source) == {(source, 0): 5}
    query(other, group).run(0, {source: {"0": 3}})
    assert offsets_of(bootstrap, group, source) == {(source, 0): 3}, "whoever was last is shown"
    again = query(one, group)
    again.run(0, {source: {"0": 5}})
    assert rows.written == [0, 0], "a batch that was committed is not written again"
    again.run(1, {source: {"0": 9}})
    query(other, group).run(1, {source: {"0": 8}})
    assert rows.written == [0, 0, 1, 1]
    assert [offsets_of(bootstrap, each, source) for each in (one, other, group)] == [
        {(source, 0): offset} for offset in (9, 8, 8)
    ]


def test_a_note_is_found_when_a_topic_of_the_sources_name_has_come(
    bootstrap: str, make_topic: MakeTopic, rows: Rows, query: Callable[..., Query], fresh_name: str
) -> None:
    """Spark's own Kafka source says no ids: then it is the name that counts."""
    mine = f"{fresh_name}-query"
    query(mine).run(0, {fresh_name: {"0": 5}})
    assert list(offsets_of(bootstrap, mine, fresh_name, rows.topic)) == [(rows.topic, 0)], "a topic of another cluster"
    make_topic(1)
    again = query(mine)
    again.run(0, {fresh_name: {"0": 5}})
    assert rows.written == [0]
    again.run(1, {fresh_name: {"0": 7}})
    last = query(mine)
    last.run(1, {fresh_name: {"0": 7}})
    assert rows.written == [0, 1]
    with pytest.raises(CheckpointMismatch, match="has another plan from batch 0 on"):
        query(mine).run(0, {fresh_name: {"0": 5}})


def test_a_topic_of_the_same_name_on_another_cluster_is_known_by_its_id(
    bootstrap: str, make_topic: MakeTopic, rows: Rows, query: Callable[..., Query]
) -> None:
    mirrored = make_topic(1)
    mine = f"{mirrored}-query"
    query(mine, f"{mirrored}-group").run(0, {mirrored: {"0": 5}, "@ids": {mirrored: ELSEWHERE}})
    assert list(offsets_of(bootstrap, mine, mirrored, rows.topic)) == [(rows.topic, 0)]
    assert offsets_of(bootstrap, f"{mirrored}-group", mirrored, rows.topic) == {}, "its offsets mean nothing here"
    query(mine).run(0, {mirrored: {"0": 5}, "@ids": {mirrored: ELSEWHERE}})
    assert rows.written == [0]


def test_without_ids_a_topic_that_lacks_a_partition_is_another_one(
    bootstrap: str, make_topic: MakeTopic, rows: Rows, query: Callable[..., Query]
) -> None:
    smaller = make_topic(1)
    mine = f"{smaller}-query"
    for _ in range(2):
        query(mine).run(0, {smaller: {"0": 5, "1": 7}})
    assert list(offsets_of(bootstrap, mine, smaller, rows.topic)) == [(rows.topic, 0)]
    assert rows.written == [0]


def test_at_least_once_offsets_are_in_both_groups(
    bootstrap: str, make_topic: MakeTopic, rows: Rows, query: Callable[..., Query]
) -> None:
    source = make_topic(1)
    mine, group = f"{source}-query", f"{source}-group"
    query(mine, group, exactly_once=False).run(0, {source: {"0": 5}})
    assert [offsets_of(bootstrap, each, source) for each in (mine, group)] == [{(source, 0): 5}] * 2
    query(mine, group).run(1, {source: {"0": 6}})
    assert rows.written == [0, 1], "and it can go on exactly once"


def test_a_shared_group_has_offsets_of_sources_only(
    bootstrap: str, rows: Rows, query: Callable[..., Query], fresh_name: str
) -> None:
    """Another query of the group may read what this one writes."""
    application = f"{fresh_name}-application"
    with pytest.raises(SourceUnknown, match=fresh_name):
        query(f"{fresh_name}-query", group=application).run(0, {fresh_name: {"0": 5}})
    assert offsets_of(bootstrap, application, fresh_name, rows.topic) == {}
    assert rows.written == []


def test_of_two_with_one_transactional_id_the_older_is_fenced(
    make_topic: MakeTopic, rows: Rows, query: Callable[..., Query]
) -> None:
    """The same application, started twice, on machines that share no checkpoint."""
    source = make_topic(1)
    shared = {"group": f"{source}-application", "transactional_id": f"{source}-application-0"}
    older, newer = query(f"{source}-older", **shared), query(f"{source}-newer", **shared)
    older.run(0, {source: {"0": 5}})
    newer.run(0, {source: {"0": 7}})
    with pytest.raises(Fenced, match=f"{source}-older was fenced in batch 1"):
        older.run(1, {source: {"0": 7}})
