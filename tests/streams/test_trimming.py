"""Changelogs of windows lose what is old by stream time, however long ago that was; brokers take nothing from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer as Confluent

from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.produce import Producer
from millstream.client.sync import SyncClient
from millstream.spark.planning import earliest_of, latest_of
from millstream.streams import StreamsBuilder, tumbling
from millstream.streams.lower.topics import owned_topics, settings_of_topic
from millstream.streams.lower.trimming import trim
from millstream.streams.settings import settings_of
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.millstream_process import MillstreamProcess
    from tests.support.running import RunningBroker

DAY_MS = 86_400_000
LONG_AGO_MS = 1_600_000_000_000
RETENTION_MS = DAY_MS + 15


def made_by_an_application() -> dict[str, str | None]:
    """The settings of a windowed store's changelog."""
    builder = StreamsBuilder(key=str, value=str)
    builder.stream("in").group_by_key().windowed_by(tumbling(10, grace_ms=5)).count(store="windows")
    topics = {topic.name: topic for topic in owned_topics(builder.build().plan, "app")}
    assert topics["app-windows-changelog"].retention_ms == RETENTION_MS
    return settings_of_topic(topics["app-windows-changelog"], settings_of("app", "nowhere:1", {}))


class Changelogs:
    """Topics of one partition, with records of certain times."""

    def __init__(self, servers: str) -> None:
        self.connection = {"bootstrap.servers": servers}
        self.client = SyncClient(self.connection)

    def make(self, topic: str, configs: dict[str, Any], times_ms: list[int]) -> None:
        raise_first(self.client.run(create_topics, [NewTopic(topic, 1, 1, configs)]))
        producer = Producer(self.client.client)
        for number, time_ms in enumerate(times_ms):
            record = (f"k{number}".encode(), b"v", (), time_ms)
            self.client.run(lambda _, record=record: producer.send(topic, 0, [record]))

    def bounds(self, topic: str) -> tuple[int, int]:
        place = (topic, 0)
        first = self.client.run(earliest_of, [place])[place]
        return first, self.client.run(latest_of, [place], read_committed=True)[place]


def test_a_broker_takes_nothing_from_a_replay_of_old_records(
    fresh_millstream: Callable[..., MillstreamProcess],
) -> None:
    """With Kafka Streams' own settings all of it would go: it is older than a day by the wall clock."""
    broker = fresh_millstream(settings={"log.retention.check.interval.ms": "50", "log.initial.task.delay.ms": "0"})
    broker.start()
    changelogs = Changelogs(broker.bootstrap_servers)
    times_ms = [LONG_AGO_MS + each for each in range(5)]
    changelogs.make("ours", made_by_an_application(), times_ms)
    changelogs.make("kafkas", {**made_by_an_application(), "retention.ms": str(RETENTION_MS)}, times_ms)
    wait_until(lambda: changelogs.bounds("kafkas") == (5, 5), "the broker to look for what has expired")
    assert changelogs.bounds("ours") == (0, 5)
    changelogs.client.close()


@pytest.mark.parametrize("times", ["in order", "one behind"])
def test_what_is_old_by_stream_time_is_deleted(either: RunningBroker, fresh_name: str, times: str) -> None:
    changelogs = Changelogs(either.bootstrap_servers)
    now_ms = LONG_AGO_MS + 10 * DAY_MS
    old_ms, young_ms = [LONG_AGO_MS + each * DAY_MS for each in range(4)], [now_ms - RETENTION_MS, now_ms - 1, now_ms]
    if times == "one behind":
        # What lies behind a young record stays with it.
        old_ms[2] = now_ms - 100
    changelogs.make(fresh_name, made_by_an_application(), [*old_ms, *young_ms])
    trimmed = trim(changelogs.connection, {fresh_name: RETENTION_MS})
    first = 4 if times == "in order" else 2
    assert trimmed == {(fresh_name, 0): first}
    assert changelogs.bounds(fresh_name) == (first, 7)
    assert trim(changelogs.connection, {fresh_name: RETENTION_MS}) == {}, "nothing new"
    changelogs.client.close()


def test_markers_of_transactions_say_nothing_of_stream_time(either: RunningBroker, fresh_name: str) -> None:
    """They have the time at which they were written, which in a replay is years away."""
    changelogs = Changelogs(either.bootstrap_servers)
    changelogs.make(fresh_name, made_by_an_application(), [])
    writer = Confluent({"bootstrap.servers": either.bootstrap_servers, "transactional.id": fresh_name})
    writer.init_transactions(60)
    for time_ms in (LONG_AGO_MS, LONG_AGO_MS + 5, LONG_AGO_MS + DAY_MS):
        writer.begin_transaction()
        writer.produce(fresh_name, b"v", str(time_ms), partition=0, timestamp=time_ms)
        writer.commit_transaction(60)
    wait_until(lambda: changelogs.bounds(fresh_name)[1] == 6, "the last marker")
    assert trim(changelogs.connection, {fresh_name: RETENTION_MS}) == {}, "all three are young"
    changelogs.client.close()
