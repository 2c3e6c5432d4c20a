"""Repartition topics lose what no micro-batch can be planned for again, and nothing that one still could."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.errors import Refusal
from millstream.client.produce import Producer
from millstream.client.sync import SyncClient
from millstream.spark.planning import earliest_of
from millstream.streams import StreamsBuilder
from millstream.streams.lower.beside import beside_of
from millstream.streams.lower.purging import Purging
from millstream.streams.lower.subtopologies import subtopologies
from millstream.streams.settings import settings_of
from tests.support.topics import until_led
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

PARTITIONS = 2


class Topics:
    """Two topics of twenty records in each partition; where they begin."""

    def __init__(self, servers: str, name: str) -> None:
        self.connection = {"bootstrap.servers": servers}
        self.internal, self.input = f"{name}-repartition", f"{name}-in"
        self.places = [(topic, index) for topic in (self.internal, self.input) for index in range(PARTITIONS)]
        with SyncClient(self.connection) as client:
            new = [NewTopic(topic, PARTITIONS, 1, {"retention.ms": "-1"}) for topic in (self.internal, self.input)]
            raise_first(client.run(create_topics, new))
            for topic in (self.internal, self.input):
                until_led(servers, topic, PARTITIONS)
            producer = Producer(client.client)
            for place in self.places:
                client.run(lambda _, place=place: producer.send(*place, [(b"k", b"v", (), 5)] * 20))

    def firsts(self) -> list[int]:
        with SyncClient(self.connection) as client:
            return list(client.run(earliest_of, self.places).values())

    def starts(self, first: int, second: int) -> dict[tuple[str, int], int]:
        """A micro-batch that begins here in both partitions of both topics."""
        return dict(zip(self.places, (first, second, first, second), strict=True))


def test_the_last_micro_batch_that_is_done_stays(either: RunningBroker, fresh_name: str) -> None:
    topics = Topics(either.bootstrap_servers, fresh_name)
    purging = Purging(topics.connection, [topics.internal], 30_000, fresh_name)
    purging.begun(topics.starts(3, 0))
    assert purging.purge() == {}, "it is under way"
    purging.begun(topics.starts(8, 0))
    assert purging.purge() == {(topics.internal, 0): 3}
    purging.begun(topics.starts(8, 0))
    assert purging.purge() == {}, "the same micro-batch was tried again"
    purging.begun(topics.starts(12, 6))
    purging.begun(topics.starts(12, 9))
    assert purging.purge() == {(topics.internal, 0): 8, (topics.internal, 1): 6}
    assert topics.firsts() == [8, 6, 0, 0], "what others wrote is not ours to delete"


def test_it_is_tried_again(either: RunningBroker, fresh_name: str) -> None:
    """An offset that the partition does not have is refused, and takes no other with it."""
    topics = Topics(either.bootstrap_servers, fresh_name)
    purging = Purging(topics.connection, [topics.internal], 20, fresh_name)
    for first, second in ((5, 0), (9, 50), (12, 60)):
        purging.begun(topics.starts(first, second))
    with pytest.raises(Refusal, match="partition 1"):
        purging.purge()
    assert topics.firsts()[:2] == [9, 0]
    purging.start()
    try:
        purging.begun(topics.starts(15, 60))
        wait_until(lambda: topics.firsts()[:2] == [12, 0], "what came later to be deleted", within_s=120)
    finally:
        purging.close()


def test_it_is_for_internal_topics_alone() -> None:
    builder = StreamsBuilder(key=str, value=str)
    builder.stream("in").select_key(lambda _key, value: value, key=str).group_by_key().count(store="counts")
    settings = settings_of("app", "nowhere:1", {"repartition.purge.interval.ms": 100})
    beside = beside_of(subtopologies(builder.build().plan), settings)
    beside.membership.close()
    assert beside.purging._topics == {"app-counts-repartition"}
    assert beside.purging._interval_s == 0.1
