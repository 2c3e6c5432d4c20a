"""AlterPartition: a leader reports who is in sync; the controller checks, and may find that a move is complete.

The request names the epochs that the leader knows, so that a report which was overtaken by another change is refused
and not applied to a partition that has become another. A replica whose broker is fenced, is shutting down, or has been
restarted since the leader last heard from it (KIP-903) may not enter the ISR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.broker_lifecycle import registered
from millstream.metadata.decision import Decision
from millstream.metadata.delta_topics import changed_partition
from millstream.metadata.image import RECOVERED, RECOVERING
from millstream.metadata.leadership import last_resort
from millstream.metadata.partition_change import Wanted, change_partition
from millstream.protocol.errors import (
    BrokerError,
    ErrorCode,
    FencedLeaderEpoch,
    InvalidRequest,
    NotController,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millstream.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    PartitionData,
    TopicData,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.metadata.image import MetadataImage, PartitionImage, TopicImage
    from millstream.metadata.record_types import MetadataRecord, PartitionChangeRecord

ANY_EPOCH = -1
EPOCHS_SINCE = 3


class IneligibleReplica(BrokerError, code=ErrorCode.INELIGIBLE_REPLICA):
    """A replica may not be in sync, because its broker does not take part, or was restarted."""


class InvalidUpdateVersion(BrokerError, code=ErrorCode.INVALID_UPDATE_VERSION):
    """The partition has changed since."""


def decide_alter_partition(
    image: MetadataImage, request: AlterPartitionRequest, version: int
) -> Decision[AlterPartitionResponse]:
    """Change the ISRs that may be changed so; one bad partition does not stop the others."""
    registered(image, request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    topics = [
        AlterPartitionResponseTopicData(
            topic_id=entry.topic_id, partitions=list(_alter_topic(image, entry, request.broker_id, version, records))
        )
        for entry in request.topics
    ]
    return Decision(tuple(records), AlterPartitionResponse(topics=topics))


def _alter_topic(
    image: MetadataImage, entry: TopicData, broker_id: int, version: int, records: list[MetadataRecord]
) -> Iterator[AlterPartitionResponsePartitionData]:
    topic = image.topics.by_id.get(entry.topic_id)
    for wish in entry.partitions:
        try:
            if topic is None:
                raise UnknownTopicId(f"there is no topic {entry.topic_id}")
            before = topic.partitions.get(wish.partition_index)
            if before is None:
                raise UnknownTopicOrPartition(f"there is no partition {topic.name}-{wish.partition_index}")
            isr = _isr(wish, version)
            _check(image, before, wish, broker_id, isr)
            record = _change(image, topic, wish, tuple(isr))
        except BrokerError as refusal:
            yield _refused(wish.partition_index, refusal.code)
            continue
        after = before
        if record is not None:
            records.append(record)
            after = changed_partition(before, record)
        yield _answer(wish.partition_index, broker_id, after)


def _isr(wish: PartitionData, version: int) -> dict[int, int]:
    """The replicas, each with the epoch at which the leader knows its broker."""
    if version >= EPOCHS_SINCE:
        return {member.broker_id: member.broker_epoch for member in wish.new_isr_with_epochs}
    return dict.fromkeys(wish.new_isr, ANY_EPOCH)


def _check(
    image: MetadataImage, partition: PartitionImage, wish: PartitionData, broker_id: int, isr: dict[int, int]
) -> None:
    if wish.leader_epoch > partition.leader_epoch or wish.partition_epoch > partition.partition_epoch:
        raise NotController("The leader knows more than this controller: there must be a newer one.")
    if wish.leader_epoch < partition.leader_epoch:
        raise FencedLeaderEpoch(f"leader epoch {wish.leader_epoch} is old: it is {partition.leader_epoch}")
    if partition.leader != broker_id:
        raise InvalidRequest(f"broker {broker_id} does not lead this partition")
    if wish.partition_epoch < partition.partition_epoch:
        raise InvalidUpdateVersion
    if broker_id not in isr or any(replica not in partition.replicas for replica in isr):
        raise InvalidRequest("an ISR consists of replicas, the leader among them")
    if wish.leader_recovery_state not in (RECOVERED, RECOVERING):
        raise InvalidRequest(f"{wish.leader_recovery_state} is no state of recovery")
    if wish.leader_recovery_state == RECOVERING and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED):
        raise InvalidRequest("while a leader recovers it is alone in sync, and a recovered one does not begin again")
    for replica, epoch in isr.items():
        broker = image.brokers.get(replica)
        if broker is None or not broker.active or epoch not in (ANY_EPOCH, broker.epoch):
            raise IneligibleReplica(f"broker {replica} is fenced, is shutting down or was restarted")


def _change(
    image: MetadataImage, topic: TopicImage, wish: PartitionData, isr: tuple[int, ...]
) -> PartitionChangeRecord | None:
    wanted = Wanted(isr=isr, recovery_state=wish.leader_recovery_state, election=last_resort(image, topic))
    return change_partition(image, topic, wish.partition_index, wanted)


def _answer(index: int, broker_id: int, after: PartitionImage) -> AlterPartitionResponsePartitionData:
    if after.leader != broker_id:
        # The change completed a move that took the leader out; it hears of its successor by the metadata.
        return _refused(index, ErrorCode.NEW_LEADER_ELECTED)
    return AlterPartitionResponsePartitionData(
        partition_index=index,
        leader_id=after.leader,
        leader_epoch=after.leader_epoch,
        isr=list(after.isr),
        leader_recovery_state=after.leader_recovery_state,
        partition_epoch=after.partition_epoch,
    )


def _refused(index: int, code: ErrorCode) -> AlterPartitionResponsePartitionData:
    return AlterPartitionResponsePartitionData(
        partition_index=index, error_code=code, leader_id=0, leader_epoch=0, isr=[], partition_epoch=0
    )
