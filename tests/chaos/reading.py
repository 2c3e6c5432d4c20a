"""What is asked of a cluster when nothing is written any more: every record, where partitions end, stored offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, IsolationLevel, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.testing.history import Place

PARTITIONS = 3
TOMBSTONE = "tombstone"
"""The header that carries the value of a `Sent` that deletes."""
# A transaction that its producer has left alone ends after transaction.timeout.ms (30 s here), looked for every 10 s.
DECIDED_S = 60


def value_of(message: Message) -> str:
    """What the history knows a record by. A tombstone has no value: its header says what stands for it."""
    value = message.value()
    if value is not None:
        return bytes(value).decode()
    return next((bytes(found).decode() for name, found in message.headers() or () if name == TOMBSTONE), "")


def read_everything(bootstrap: str, topic: str, *, committed: bool) -> dict[Place, tuple[tuple[int, str], ...]]:
    """Every record of the topic, by assignment, up to where it ends for this kind of reader."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "everything",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
        }
    )
    found: dict[Place, list[tuple[int, str]]] = {(topic, index): [] for index in range(PARTITIONS)}
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(30)
        assert message is not None, f"{topic} cannot be read to its end"
        if message.error() is not None:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            ended.add(message.partition())
        else:
            found[topic, message.partition()].append((message.offset(), value_of(message)))
    consumer.close()
    return {place: tuple(records) for place, records in found.items()}


def ends_of(admin: AdminClient, places: Iterable[Place], *, committed: bool) -> dict[Place, tuple[int, int]]:
    """(offset, leader epoch) of ListOffsets(latest): with `committed` of the last stable offset. KafkaException."""
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    asked = admin.list_offsets(
        {TopicPartition(*place): OffsetSpec.latest() for place in places}, isolation_level=level, request_timeout=5
    )
    found: dict[Place, tuple[int, int]] = {}
    for part, future in asked.items():
        result = future.result(10)
        epoch = result.leader_epoch
        found[part.topic, part.partition] = (result.offset, -1 if epoch is None else epoch)
    return found


def stable_ends(bootstrap: str, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
    """(last stable offset, end) of each partition once they are the same, or when that has taken too long."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    found: dict[Place, tuple[int, int]] = {}

    def are_decided() -> bool:
        stable, ends = ends_of(admin, places, committed=True), ends_of(admin, places, committed=False)
        found.update({place: (stable[place][0], ends[place][0]) for place in ends})
        return all(offset == end for offset, end in found.values())

    try:
        wait_until(are_decided, "all transactions to be decided", within_s=DECIDED_S, every_s=0.2)
    except TimeoutError:
        # The checker has a name for it.
        assert found
    return found


def stored_offsets(bootstrap: str, group: str, places: Iterable[Place]) -> dict[Place, int]:
    """What the group has stored for these partitions; -1 where it has nothing."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    found = consumer.committed([TopicPartition(*place) for place in places], timeout=30)
    consumer.close()
    assert not [part.error for part in found if part.error is not None]
    return {(part.topic, part.partition): max(part.offset, -1) for part in found}


def first_offsets(bootstrap: str, topic: str) -> list[int]:
    """Where the first record of each partition stands: behind 0 once compaction has taken what was there."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "first", "enable.auto.commit": False})
    found = []
    for index in range(PARTITIONS):
        consumer.assign([TopicPartition(topic, index, 0)])
        message = consumer.poll(30)
        assert message is not None, f"nothing of {topic}-{index} can be read"
        assert message.error() is None, message.error()
        found.append(message.offset())
    consumer.close()
    return found
