"""What tests with applications need of topics: making them, filling them exactly once, reading what was committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from millstream.arrow.positions import partition_count
from millstream.client.offsets import LATEST, list_offsets
from millstream.client.sync import SyncClient
from millstream.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.support.running import RunningBroker


# Each feeding doubles what there is to do.
FEEDINGS_MAX = 8


class Seen(NamedTuple):
    """A committed record."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def create_topics(
    broker: RunningBroker, *topics: str, partitions: int, configs: Mapping[str, str] | None = None
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    wanted = [NewTopic(topic, partitions, 1, config=dict(configs or {})) for topic in topics]
    for future in admin.create_topics(wanted).values():
        future.result(90)
    for topic in topics:
        until_led(broker.bootstrap_servers, topic, partitions)


def write(broker: RunningBroker, topic: str, values: Iterable[str]) -> None:
    """Each value once, even if the broker goes away meanwhile."""
    refused: list[object] = []
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "partitioner": "random"}
    )
    for value in values:
        producer.produce(topic, value=value, on_delivery=lambda error, _: refused.append(error) if error else None)
    assert producer.flush(180) == 0
    assert not refused


def stable_ends(broker: RunningBroker, topic: str, partitions: int) -> int:
    """The sum of the last stable offsets: at least as many as there are committed records, and quick to ask for."""
    wanted = [ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(partitions)]
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)]
    )
    with RawClient.of(broker) as client:
        return sum(partition.offset for partition in client.call(request, 7).topics[0].partitions)


def until_led(servers: str, topic: str, partitions: int) -> None:
    """Wait until so many partitions can be used: Apache Kafka answers before its broker half has heard of a change."""
    with SyncClient({"bootstrap.servers": servers}) as client:
        client.run(list_offsets, {(topic, index): LATEST for index in range(partitions)}, timeout_ms=120_000)


def until_settled(servers: str | Mapping[str, str], *topics: str) -> None:
    """Wait until no transaction is open in these topics; `servers` may be all of a client's options.

    Apache Kafka answers a commit before its markers are written: for a moment a reader of committed records may not see
    yet what was committed.
    """
    with SyncClient({"bootstrap.servers": servers} if isinstance(servers, str) else servers) as client:
        places = [(topic, index) for topic in topics for index in range(client.run(partition_count, topic))]

        def settled() -> bool:
            stable, end = (
                client.run(list_offsets, dict.fromkeys(places, LATEST), read_committed=committed)
                for committed in (True, False)
            )
            return all(stable[place].offset == end[place].offset for place in places)

        wait_until(settled, f"the transactions in {', '.join(topics)} to be over", within_s=120)


def in_the_middle(
    broker: RunningBroker, topic: str, partitions: int, *, before: int, of: int, feed: Callable[[int], int]
) -> None:
    """Wait until records are committed again after `before`, while some of the `of` that are to come are missing.

    Whoever is killed next would otherwise not be disturbed in anything. Where a machine was so quick that nothing is
    missing, it is given more to do: `feed(n)` writes what will become about n records, and says how many it will be.
    """
    done = 0
    for _ in range(FEEDINGS_MAX):
        done = _commits_beyond(broker, topic, partitions, before=before, done=done)
        if done < of:
            return
        of += feed(of)
    raise AssertionError(f"{topic} is always complete before anybody can look, at last with {of} records")


def _commits_beyond(broker: RunningBroker, topic: str, partitions: int, *, before: int, done: int) -> int:
    def more() -> int:
        found = stable_ends(broker, topic, partitions) - before
        return found if found > done else 0

    return wait_until(more, f"commits to {topic}", within_s=120)


def read_committed(broker: RunningBroker, topic: str, partitions: int) -> list[Seen]:
    """Every committed record, partition by partition, up to the last stable offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader-of-committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    found: list[Seen] = []
    at_end: set[int] = set()
    try:
        while len(at_end) < partitions:
            message = consumer.poll(90)
            assert message is not None, f"{topic} has no end: read {len(found)} records"
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                at_end.add(message.partition())
                continue
            found.append(Seen(message.partition(), message.offset(), message.key(), message.value()))
    finally:
        consumer.close()
    return sorted(found, key=lambda seen: (seen.partition, seen.offset))
