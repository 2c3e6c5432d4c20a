"""The two brokers, set up alike: one node, everything at its defaults, six partitions where a row needs a topic."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.uuid import ZERO_UUID
from tests.support.apache_kafka import PRODUCTION, ApacheKafka
from tests.support.millstream_process import MillstreamProcess
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.support.running import RunningBroker

APACHE_KAFKA, MILLSTREAM = "apache-kafka", "millstream"
_topic_numbers = itertools.count(1)


def make(name: str, directory: Path, settings: Mapping[str, str] | None = None) -> RunningBroker:
    """A contender with an empty directory, not started."""
    if name == MILLSTREAM:
        return MillstreamProcess(directory, settings=settings)
    kafka = ApacheKafka(directory, heap="1g", jvm_options=PRODUCTION, properties=settings)
    kafka.format()
    return kafka


def wait_for_leaders(client: RawClient, topic: str, partitions: int, within_s: float = 120) -> None:
    """Until every partition of the topic has a leader by the broker's own metadata."""

    def led() -> bool:
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        (described,) = client.call(wanted, 9).topics
        return len(described.partitions) == partitions and all(
            each.error_code == ErrorCode.NONE for each in described.partitions
        )

    wait_until(led, f"leaders of {topic}", within_s=within_s, every_s=0.002)


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
        client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID)], timeout_ms=60_000), 6)
