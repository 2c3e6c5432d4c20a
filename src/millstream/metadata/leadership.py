"""Who leads when a broker goes or comes back: the partition changes that a broker's state brings with it.

The rules, and the very fields that change, are Apache Kafka's (observed in its log, see tests/kafka_directory):

- A broker that leaves (fenced, or shutting down) leads nothing and leaves the ISR. Without eligible leader replicas
  (KIP-966) the last member stays in the ISR, since nobody else could be elected without loss. With them the ISR may
  become empty: the leaver is kept as an eligible leader, and as the last leader known.
- After an unclean shutdown a broker may have lost what it had not synced, so it is no longer an eligible leader.
- A broker that returns takes over partitions without a leader if it is in the ISR or eligible. If nobody is left but
  the last leader known, that one is elected, RECOVERING: it may have lost records, and consumers of this state know.
  An operator can allow any replica with unclean.leader.election.enable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.metadata.image import (
    BROKER_CONFIG,
    CLUSTER_DEFAULT,
    NO_LEADER,
    RECOVERING,
    TOPIC_CONFIG,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from millstream.metadata.record_types import PartitionChangeRecord
from millstream.protocol.uuid import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.protocol.uuid import Uuid

ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"


class _After(NamedTuple):
    """The fields of a partition that these changes touch."""

    leader: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    recovery: int


def changes_when_broker_leaves(image: MetadataImage, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """Every partition that had the broker in sync, or as its leader, without it."""
    with_elr = eligible_leaders_enabled(image)
    for topic in image.topics.by_id.values():
        for number, partition in topic.partitions.items():
            if partition.leader != broker_id and broker_id not in partition.isr:
                continue
            after = _without(image, topic, partition, broker_id, with_elr=with_elr)
            record = _record(topic.id, number, partition, after)
            if record is not None:
                yield record


def changes_after_unclean_shutdown(image: MetadataImage, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """What the broker wrote last may be gone: it is no longer eligible to lead."""
    for topic in image.topics.by_id.values():
        for number, partition in topic.partitions.items():
            if broker_id in partition.elr:
                after = _present(partition)._replace(elr=_minus(partition.elr, broker_id))
                record = _record(topic.id, number, partition, after)
                if record is not None:
                    yield record


def changes_when_broker_returns(image: MetadataImage, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """Partitions without a leader that the broker, now active, can lead."""
    for topic in image.topics.by_id.values():
        for number, partition in topic.partitions.items():
            if partition.leader != NO_LEADER or broker_id not in partition.replicas:
                continue
            if not _directory_is_online(image, partition, broker_id):
                continue
            after = _elected(image, topic, partition, broker_id)
            if after is None:
                continue
            record = _record(topic.id, number, partition, after)
            if record is not None:
                yield record


def eligible_leaders_enabled(image: MetadataImage) -> bool:
    return image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0


def _present(partition: PartitionImage) -> _After:
    return _After(
        partition.leader, partition.isr, partition.elr, partition.last_known_elr, partition.leader_recovery_state
    )


def _minus(replicas: tuple[int, ...], broker_id: int) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica != broker_id)


def _without(
    image: MetadataImage, topic: TopicImage, partition: PartitionImage, broker_id: int, *, with_elr: bool
) -> _After:
    after = _present(partition)
    isr = _minus(partition.isr, broker_id)
    if isr or with_elr:
        after = after._replace(isr=isr)
    if partition.leader == broker_id:
        heirs = (replica for replica in partition.replicas if replica in isr and _is_active(image, replica))
        after = after._replace(leader=next(heirs, NO_LEADER))
    if with_elr and len(isr) < _min_isr(image, topic, partition):
        eligible = dict.fromkeys((*partition.elr, *partition.isr))
        after = after._replace(elr=tuple(replica for replica in eligible if replica not in isr))
        if after.leader == NO_LEADER and partition.leader != NO_LEADER:
            after = after._replace(last_known_elr=(partition.leader,))
    return after


def _elected(image: MetadataImage, topic: TopicImage, partition: PartitionImage, broker_id: int) -> _After | None:
    if broker_id in partition.isr:
        after = _present(partition)._replace(leader=broker_id)
    elif broker_id in partition.elr:
        after = _present(partition)._replace(leader=broker_id, isr=(broker_id,))
    elif _is_last_known_leader(partition, broker_id) or _unclean_election_allowed(image, topic):
        after = _present(partition)._replace(leader=broker_id, isr=(broker_id,), recovery=RECOVERING)
    else:
        return None
    if len(after.isr) >= _min_isr(image, topic, partition):
        return after._replace(elr=(), last_known_elr=())
    return after._replace(elr=_minus(after.elr, broker_id), last_known_elr=())


def _is_last_known_leader(partition: PartitionImage, broker_id: int) -> bool:
    return not partition.isr and not partition.elr and partition.last_known_elr == (broker_id,)


def _is_active(image: MetadataImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.active


def _directory_is_online(image: MetadataImage, partition: PartitionImage, broker_id: int) -> bool:
    directory = partition.directory_of(broker_id)
    if directory in (DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING):
        return True
    broker = image.brokers.get(broker_id)
    return directory != DIRECTORY_LOST and broker is not None and directory in broker.log_dirs


def _min_isr(image: MetadataImage, topic: TopicImage, partition: PartitionImage) -> int:
    value = _effective_config(image, topic, "min.insync.replicas")
    return min(int(value) if value is not None else 1, len(partition.replicas))


def _unclean_election_allowed(image: MetadataImage, topic: TopicImage) -> bool:
    return _effective_config(image, topic, "unclean.leader.election.enable") == "true"


def _effective_config(image: MetadataImage, topic: TopicImage, name: str) -> str | None:
    value = image.config(TOPIC_CONFIG, topic.name).get(name)
    return image.config(BROKER_CONFIG, CLUSTER_DEFAULT).get(name) if value is None else value


def _record(topic_id: Uuid, number: int, before: PartitionImage, after: _After) -> PartitionChangeRecord | None:
    if after == _present(before):
        return None
    record = PartitionChangeRecord(partition_id=number, topic_id=topic_id)
    if after.isr != before.isr:
        record.isr = list(after.isr)
    if after.leader != before.leader:
        record.leader = after.leader
    if after.recovery != before.leader_recovery_state:
        record.leader_recovery_state = after.recovery
    if after.elr != before.elr:
        record.eligible_leader_replicas = list(after.elr)
    if after.last_known_elr != before.last_known_elr:
        record.last_known_elr = list(after.last_known_elr)
    return record
