"""Streaming reads: what each batch takes, and what happens when topics change under a query."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

from millstream import arrow
from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_partitions, create_topics, delete_records, delete_topics
from millstream.client.sync import SyncClient
from millstream.spark.starting import started
from tests.support.topics import until_led
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    LoadStream = Callable[..., DataFrame]
    MakeTopic = Callable[..., str]

DEADLINE_S = 120


class Collected:
    """A query that keeps what it read, run over and over on one checkpoint."""

    def __init__(self, spark: SparkSession, checkpoint: Path) -> None:
        self.values: list[int] = []
        self.sizes: list[int] = []
        self._spark = spark
        self._checkpoint = checkpoint
        self.query: StreamingQuery | None = None

    def start(self, rows: DataFrame, *, available_now: bool = False) -> StreamingQuery:
        def take(batch: DataFrame, _: int) -> None:
            found = [int(row.value) for row in batch.select("value").collect()]
            self.sizes += [len(found)] if found else []
            self.values += found

        writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(self._checkpoint))
        if available_now:
            writer = writer.trigger(availableNow=True)
        self.query = started(writer.start)
        return self.query

    def run(self, rows: DataFrame) -> list[int]:
        """Everything that there is; the rows of each batch."""
        query = self.start(rows, available_now=True)
        assert query.awaitTermination(DEADLINE_S), "the query does not end"
        return [progress["numInputRows"] for progress in query.recentProgress]

    def until(self, expected: list[int]) -> None:
        def arrived() -> bool:
            assert self.query is not None
            if self.query.exception() is not None:
                raise self.query.exception()  # type: ignore[misc]
            return sorted(self.values) == sorted(expected)

        try:
            wait_until(arrived, "the records", within_s=DEADLINE_S, every_s=0.05)
        except TimeoutError as late:
            raise AssertionError(f"{sorted(self.values)} instead of {sorted(expected)}") from late

    def stop(self) -> None:
        """End the query; a batch that was seen may be seen again, unless `committed` was waited for."""
        if self.query is not None:
            self.query.stop()

    def committed(self) -> None:
        """Until Spark has noted all that was seen: the progress of a batch is told after its commit."""
        query = self.query
        assert query is not None

        def noted() -> bool:
            return sum(progress["numInputRows"] for progress in query.recentProgress) >= len(self.values)

        wait_until(noted, "the commit of the last batch", within_s=DEADLINE_S, every_s=0.05)

    def offsets(self) -> dict[str, object]:
        """The newest entry of the checkpoint."""
        newest = max(int(path.name) for path in (self._checkpoint / "offsets").iterdir() if path.name.isdecimal())
        found: dict[str, object] = json.loads((self._checkpoint / "offsets" / str(newest)).read_text().splitlines()[2])
        return found


@pytest.fixture
def collected(spark: SparkSession, tmp_path: Path) -> Iterator[Collected]:
    made = Collected(spark, tmp_path / "checkpoint")
    yield made
    made.stop()


def put(bootstrap: str, topic: str, numbers: range, partition: int = 0) -> None:
    rows = {"value": [str(number).encode() for number in numbers]}
    where = pa.array([partition] * len(numbers), pa.int32())
    arrow.write(bootstrap, topic, pa.table({**rows, "where": where}), partition_by="where")


def ask(bootstrap: str, call: Callable[..., object], *arguments: object) -> None:
    with SyncClient({"bootstrap.servers": bootstrap}) as client:
        raise_first(client.run(call, *arguments))  # type: ignore[arg-type]


def made_again(bootstrap: str, topic: str) -> None:
    ask(bootstrap, delete_topics, [topic])

    def made() -> bool:
        with SyncClient({"bootstrap.servers": bootstrap}) as client:
            outcome = client.run(create_topics, [NewTopic(topic, 1, 1)])[topic]
        return not isinstance(outcome, Exception)

    # The old one's files go in the background.
    wait_until(made, "the topic to be gone and made again", within_s=DEADLINE_S)
    until_led(bootstrap, topic, 1)


def test_batches_are_limited_and_a_checkpoint_says_where_to_go_on(
    load_stream: LoadStream, collected: Collected, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    put(bootstrap, topic, range(300))
    put(bootstrap, topic, range(300, 400), partition=1)
    batches = collected.run(load_stream(subscribe=topic, maxOffsetsPerTrigger="100"))
    assert sorted(collected.values) == list(range(400))
    assert max(batches) <= 102
    assert len([rows for rows in batches if rows]) >= 4
    put(bootstrap, topic, range(400, 410))
    collected.run(load_stream(subscribe=topic, minPartitions="4"))
    assert sorted(collected.values) == list(range(410))
    found = collected.offsets()
    assert found[topic] == {"0": 310, "1": 100}
    assert collected.run(load_stream(subscribe=topic)) in ([], [0]), "nothing is new"


def test_a_new_query_starts_at_the_latest_offset_and_keeps_to_it(
    spark: SparkSession, bootstrap: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    put(bootstrap, topic, range(5))
    rows = spark.readStream.format("millstream").option("kafka.bootstrap.servers", bootstrap)
    first, second = Collected(spark, tmp_path), Collected(spark, tmp_path)
    first.start(rows.option("subscribe", topic).load())
    try:
        wait_until((tmp_path / "commits" / "0").exists, "the first batch", within_s=DEADLINE_S)
        put(bootstrap, topic, range(5, 8))
        first.until([5, 6, 7])
    finally:
        first.stop()
    # As if it had crashed in its first batch: offsets are chosen, nothing is committed.
    for path in (tmp_path / "commits").iterdir():
        path.unlink()
    for path in (tmp_path / "offsets").iterdir():
        if path.name.lstrip(".") != "0":
            path.unlink()
    put(bootstrap, topic, range(8, 10))
    second.run(rows.option("subscribe", topic).load())
    assert sorted(second.values) == [5, 6, 7, 8, 9], "the first batch begins where it began"


def test_new_partitions_and_topics_are_picked_up(
    load_stream: LoadStream, collected: Collected, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(suffix="-a")
    pattern = topic[:-1] + "[a-z]"
    put(bootstrap, topic, range(3))
    collected.start(load_stream(subscribePattern=pattern))
    collected.until([0, 1, 2])
    ask(bootstrap, create_partitions, {topic: 2})
    until_led(bootstrap, topic, 2)
    put(bootstrap, topic, range(3, 5), partition=1)
    collected.until(list(range(5)))
    put(bootstrap, make_topic(suffix="-b"), range(5, 7))
    collected.until(list(range(7)))


def test_a_topic_that_was_made_again_is_noticed(
    load_stream: LoadStream, collected: Collected, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    put(bootstrap, topic, range(3))
    collected.run(load_stream(subscribe=topic))
    made_again(bootstrap, topic)
    put(bootstrap, topic, range(10, 16))
    with pytest.raises(StreamingQueryException, match="was deleted and created again since it was read"):
        collected.run(load_stream(subscribe=topic))
    assert sorted(collected.values) == [0, 1, 2]
    collected.run(load_stream(subscribe=topic, failOnDataLoss="false"))
    assert sorted(collected.values) == [0, 1, 2, *range(10, 16)], "the new one is read from its beginning"


def test_expired_offsets_fail_the_query_or_are_left_out(
    load_stream: LoadStream, collected: Collected, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    put(bootstrap, topic, range(3))
    collected.run(load_stream(subscribe=topic))
    put(bootstrap, topic, range(3, 20))
    ask(bootstrap, delete_records, {(topic, 0): 10})
    with pytest.raises(StreamingQueryException, match="should be read on from offset 3, but it begins at 10"):
        collected.run(load_stream(subscribe=topic))
    collected.run(load_stream(subscribe=topic, failOnDataLoss="false"))
    assert sorted(collected.values) == [0, 1, 2, *range(10, 20)]


def test_a_topic_that_is_gone_fails_the_query_or_is_left_out(
    load_stream: LoadStream, collected: Collected, bootstrap: str, make_topic: MakeTopic
) -> None:
    kept, gone = make_topic(suffix="-kept"), make_topic(suffix="-gone")
    put(bootstrap, kept, range(3))
    put(bootstrap, gone, range(3, 6))
    collected.run(load_stream(subscribe=f"{kept},{gone}"))
    ask(bootstrap, delete_topics, [gone])
    put(bootstrap, kept, range(6, 8))
    with pytest.raises(StreamingQueryException, match="is not there any more"):
        collected.run(load_stream(subscribe=f"{kept},{gone}"))
    collected.run(load_stream(subscribe=f"{kept},{gone}", failOnDataLoss="false"))
    assert sorted(collected.values) == list(range(8))


def test_a_batch_waits_for_its_minimum_or_its_delay(
    load: LoadStream, load_stream: LoadStream, collected: Collected, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    put(bootstrap, topic, range(1))
    collected.start(load_stream(subscribe=topic, minOffsetsPerTrigger="10", maxTriggerDelay="1h"))
    collected.until([0])
    put(bootstrap, topic, range(1, 9))
    # Long enough for many polls of the query.
    assert load(subscribe=topic).count() == 9
    assert collected.values == [0]
    put(bootstrap, topic, range(9, 12))
    collected.until(list(range(12)))
    assert collected.sizes == [1, 11]
    collected.committed()
    collected.stop()
    collected.values.clear()
    # What has come meanwhile is there at the first look, which waits for nothing.
    put(bootstrap, topic, range(12, 14))
    collected.start(load_stream(subscribe=topic, minOffsetsPerTrigger="10", maxTriggerDelay="1h"))
    collected.until([12, 13])
    collected.committed()
    collected.stop()
    collected.start(load_stream(subscribe=topic, minOffsetsPerTrigger="10", maxTriggerDelay="1ms"))
    put(bootstrap, topic, range(14, 16))
    collected.until(list(range(12, 16)))
