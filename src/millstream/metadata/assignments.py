"""New partitions: who may hold a replica, whether an assignment given by hand is possible, and the first record.

Used wherever partitions come to be or move: CreateTopics, CreatePartitions, AlterPartitionReassignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.image import RECOVERED
from millstream.metadata.placement import Candidate, place_replicas
from millstream.protocol.errors import InvalidReplicaAssignment, InvalidReplicationFactor, PolicyViolation
from millstream.protocol.messages.metadata.partition import PartitionRecord
from millstream.protocol.uuid import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Uuid
from millstream.settings import MILLSTREAM_PARTITIONS_MAX, MILLSTREAM_TOPIC_PARTITIONS_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.metadata.image import Broker, MetadataImage
    from millstream.metadata.randomness import Randomness
    from millstream.settings.effective import Settings

# Kafka's own bound on the partitions that one request may add: they are all written in one batch of records.
PARTITIONS_PER_REQUEST_MAX = 10_000


def open_directories(broker: Broker) -> tuple[Uuid, ...]:
    """The log directories that take new replicas: those that nobody cordoned (KIP-1066)."""
    cordoned = broker.cordoned_log_dirs or ()
    return tuple(directory for directory in broker.log_dirs if directory not in cordoned)


def directory_for_new_replica(image: MetadataImage, broker_id: int) -> Uuid:
    """The broker's only directory; of several it picks one itself and reports which (KIP-858)."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        return DIRECTORY_UNASSIGNED
    if not broker.log_dirs:
        return DIRECTORY_MIGRATING
    choice = open_directories(broker) or broker.log_dirs
    return choice[0] if len(choice) == 1 else DIRECTORY_UNASSIGNED


def place(
    image: MetadataImage, partition_count: int, replication_factor: int, random: Randomness
) -> list[tuple[int, ...]]:
    """Replicas for new partitions, on brokers that are not about to leave and have a directory to write to."""
    candidates = [
        Candidate(broker.id, broker.rack, broker.fenced)
        for broker in image.brokers.values()
        if not broker.in_controlled_shutdown and (not broker.log_dirs or open_directories(broker))
    ]
    return [tuple(each) for each in place_replicas(candidates, partition_count, replication_factor, random)]


def partitions_in(image: MetadataImage) -> int:
    return sum(len(topic.partitions) for topic in image.topics.by_name.values())


def check_room(settings: Settings, *, in_topic: int, in_cluster: int) -> None:
    """Refuse to let a topic have so many partitions, or the cluster."""
    for limit, count, where in (
        (MILLSTREAM_TOPIC_PARTITIONS_MAX, in_topic, "A topic"),
        (MILLSTREAM_PARTITIONS_MAX, in_cluster, "The cluster"),
    ):
        if count > settings[limit]:
            raise PolicyViolation(f"{where} may have {settings[limit]} partitions at most ({limit.name}).")


def check_assignment(image: MetadataImage, replicas: Sequence[int], replication_factor: int | None = None) -> None:
    """Refuse an assignment that names nobody, a stranger, somebody twice, or not as many as its neighbours."""
    if not replicas:
        raise InvalidReplicaAssignment("An assignment given by hand has an empty list of replicas.")
    seen: set[int] = set()
    for broker_id in replicas:
        if broker_id not in image.brokers:
            raise InvalidReplicaAssignment(f"An assignment given by hand names broker {broker_id}: none is registered.")
        if broker_id in seen:
            raise InvalidReplicaAssignment(f"An assignment given by hand names broker {broker_id} more than once.")
        seen.add(broker_id)
    if replication_factor is not None and len(replicas) != replication_factor:
        raise InvalidReplicaAssignment(
            f"An assignment given by hand has {len(replicas)} replica(s) for a partition,"
            f" and {replication_factor} for those before it; all partitions must have as many."
        )


def new_partition(
    image: MetadataImage, topic_id: Uuid, partition: int, replicas: tuple[int, ...], *, by_hand: bool
) -> PartitionRecord:
    """A partition's first record: all replicas that are active are in sync, and the first of them leads."""
    in_sync = [broker_id for broker_id in replicas if image.brokers[broker_id].active]
    if not in_sync:
        if by_hand:
            raise InvalidReplicaAssignment(
                f"All brokers of the assignment for partition {partition} are fenced or shutting down."
            )
        raise InvalidReplicationFactor(
            f"Partition {partition} cannot be placed: all brokers for it are fenced or shutting down."
        )
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=in_sync,
        removing_replicas=[],
        adding_replicas=[],
        leader=in_sync[0],
        leader_recovery_state=RECOVERED,
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory_for_new_replica(image, broker_id) for broker_id in replicas],
    )
