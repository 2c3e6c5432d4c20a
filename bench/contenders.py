"""The two brokers, set up alike: one node, everything at its defaults, six partitions where a row needs a topic.

Except for two waits: a group must not sit out a delay that gathers members, or the rows about joining would measure
that setting. Apache Kafka runs with the options of its own start script.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.apache_kafka import PRODUCTION, ApacheKafka
from tests.support.millstream_process import MillstreamProcess
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

from bench.limit_broker import KEEPS_NOTHING, STORES, LimitBroker
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millstream.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.support.running import RunningBroker

HEAP = "1g"
APACHE_KAFKA, MILLSTREAM = "apache-kafka", "millstream"
# No contenders: what the load generator does beside a broker that keeps nothing, and beside one that does no more than
# keep it (bench/limit_broker.c).
CLIENT_LIMIT, STORE_LIMIT = "client-limit", "store-limit"
# The partitions are Kafka's defaults, which the tests' support makes smaller.
COORDINATORS = {
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.num.partitions": "50",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}
_topic_numbers = itertools.count(1)


def make(name: str, directory: Path, settings: Mapping[str, str] | None = None) -> RunningBroker:
    """A contender with an empty directory, not started."""
    settings = COORDINATORS | dict(settings or {})
    if name == MILLSTREAM:
        return MillstreamProcess(directory, settings=settings)
    if name == CLIENT_LIMIT:
        return LimitBroker(directory, KEEPS_NOTHING)
    if name == STORE_LIMIT:
        return LimitBroker(directory, STORES)
    # Dynamic voters: then either contender can start on the other's directory.
    kafka = ApacheKafka(directory, voters="dynamic", heap=HEAP, jvm_options=PRODUCTION, properties=settings)
    kafka.format()
    return kafka


def ends(client: RawClient, topic: str, partitions: int) -> list[int]:
    """The next offset of every partition, -1 for one that its leader does not serve yet.

    Metadata alone is no proof: Apache Kafka names leaders before they know of it.
    """
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
    topics = [ListOffsetsTopic(name=topic, partitions=wanted)]
    (answer,) = client.call(ListOffsetsRequest(replica_id=-1, topics=topics), 4).topics
    return [each.offset if each.error_code == ErrorCode.NONE else -1 for each in answer.partitions]


def wait_for_leaders(client: RawClient, topic: str, partitions: int, within_s: float = 120) -> None:
    """Until every partition of a new topic is served."""
    wait_until(lambda: max(ends(client, topic, partitions), key=abs) == 0, f"leaders of {topic}", within_s=within_s)


@contextmanager
def topic(broker: RunningBroker, partitions: int = 6) -> Iterator[str]:
    """A topic of a row's own, deleted afterwards so that the disk holds one row's data at a time."""
    name = f"bench-{next(_topic_numbers)}"
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
    with RawClient.of(broker, timeout_s=120) as client:
        (answer,) = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=60_000), 5).topics
        assert answer.error_code == ErrorCode.NONE, answer
        wait_for_leaders(client, name, partitions)
    yield name
    # Another connection: a broker ends one that was idle for ten minutes, and rows may take longer.
    with RawClient.of(broker, timeout_s=120) as client:
        client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID)], timeout_ms=60_000), 6)
