"""Brokers come and go with the records that Apache Kafka 4.3.1's controller writes for them.

The expected changes were read with DumpLogSegments from the log of a combined node: format, start, create a topic,
stop, start, kill -9, start; with eligible leader replicas (its default) and with that feature at level 0.
"""

from __future__ import annotations

import pytest

from millstream.metadata.broker_lifecycle import (
    BrokerIdNotRegistered,
    StaleBrokerEpoch,
    decide_allocate_producer_ids,
    decide_controlled_shutdown,
    decide_fence_broker,
    decide_join,
    decide_leave,
    decide_register_broker,
    decide_unfence_broker,
)
from millstream.metadata.delta import apply
from millstream.metadata.image import EMPTY_IMAGE, Broker, MetadataImage
from millstream.metadata.record_types import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from millstream.protocol.uuid import DIRECTORY_LOST, Uuid

TOPIC = Uuid(b"t" * 16)
DIRECTORY = Uuid(b"d" * 16)
ME = Broker(id=1, epoch=-1, log_dirs=(DIRECTORY,))


class Cluster:
    """A metadata log in memory: decisions are applied at once."""

    def __init__(self, *, with_elr: bool) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self.write(FeatureLevelRecord(name="metadata.version", feature_level=30))
        if with_elr:
            self.write(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1))

    def write(self, *records: MetadataRecord) -> tuple[MetadataRecord, ...]:
        self.image, _ = apply(self.image, records, offset=self.image.offset + len(records), epoch=1)
        return records

    def register(self, clean_shutdown_epoch: int) -> tuple[MetadataRecord, ...]:
        return self.write(*decide_register_broker(self.image, ME, clean_shutdown_epoch=clean_shutdown_epoch).records)

    @property
    def epoch(self) -> int:
        return self.image.brokers[1].epoch

    def unfence(self) -> tuple[MetadataRecord, ...]:
        return self.write(*decide_unfence_broker(self.image, 1, self.epoch).records)

    def shut_down(self) -> tuple[MetadataRecord, ...]:
        return self.write(*decide_controlled_shutdown(self.image, 1, self.epoch).records)

    def fence(self) -> tuple[MetadataRecord, ...]:
        return self.write(*decide_fence_broker(self.image, 1, self.epoch).records)

    def create_topic(self, directory: Uuid = DIRECTORY) -> None:
        self.write(
            TopicRecord(name="t", topic_id=TOPIC),
            PartitionRecord(
                partition_id=0,
                topic_id=TOPIC,
                replicas=[1],
                isr=[1],
                removing_replicas=[],
                adding_replicas=[],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=[directory],
            ),
        )


def running(*, with_elr: bool) -> Cluster:
    cluster = Cluster(with_elr=with_elr)
    cluster.register(-1)
    cluster.unfence()
    cluster.create_topic()
    return cluster


def change(**fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **fields)  # type: ignore[arg-type]


def broker_change(cluster: Cluster, **fields: int) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=cluster.epoch, **fields)


def test_a_broker_registers_fenced_with_the_offset_as_its_epoch() -> None:
    cluster = Cluster(with_elr=False)
    (record,) = cluster.register(-1)
    assert isinstance(record, RegisterBrokerRecord)
    assert record.broker_epoch == cluster.image.offset
    assert record.fenced
    assert record.log_dirs == [DIRECTORY]


def test_a_clean_stop_without_eligible_leaders() -> None:
    cluster = running(with_elr=False)
    assert cluster.shut_down() == (broker_change(cluster, in_controlled_shutdown=1), change(leader=-1))
    assert cluster.fence() == (broker_change(cluster, fenced=1),)


def test_a_clean_stop_with_eligible_leaders_empties_the_isr() -> None:
    cluster = running(with_elr=True)
    assert cluster.shut_down() == (
        broker_change(cluster, in_controlled_shutdown=1),
        change(isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]),
    )
    assert cluster.fence() == (broker_change(cluster, fenced=1),)


@pytest.mark.parametrize("with_elr", [False, True])
def test_a_start_after_a_clean_stop_leads_in_a_new_epoch(with_elr: bool) -> None:
    cluster = running(with_elr=with_elr)
    cluster.shut_down()
    cluster.fence()
    assert [type(record) for record in cluster.register(cluster.epoch)] == [RegisterBrokerRecord]
    elected = (
        change(isr=[1], leader=1, eligible_leader_replicas=[], last_known_elr=[]) if with_elr else change(leader=1)
    )
    assert cluster.unfence() == (broker_change(cluster, fenced=-1), elected)
    assert cluster.image.topics.by_id[TOPIC].partitions[0].leader_epoch == 2


def test_a_start_after_a_kill_without_eligible_leaders() -> None:
    cluster = running(with_elr=False)
    fence = broker_change(cluster, fenced=1)
    lost, fenced, registered = cluster.register(-1)
    assert (lost, fenced) == (change(leader=-1), fence)
    assert isinstance(registered, RegisterBrokerRecord)
    assert cluster.unfence() == (broker_change(cluster, fenced=-1), change(leader=1))


def test_a_start_after_a_kill_with_eligible_leaders_recovers_as_the_last_leader_known() -> None:
    cluster = running(with_elr=True)
    fence = broker_change(cluster, fenced=1)
    lost, fenced, no_longer_eligible, _ = cluster.register(-1)
    assert (lost, fenced) == (
        change(isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]),
        fence,
    )
    assert no_longer_eligible == change(eligible_leader_replicas=[])
    assert cluster.unfence() == (
        broker_change(cluster, fenced=-1),
        change(isr=[1], leader=1, leader_recovery_state=1, last_known_elr=[]),
    )


@pytest.mark.parametrize("with_elr", [False, True])
def test_joining_and_leaving_in_one_step_write_the_same_records(with_elr: bool) -> None:
    apart, together = running(with_elr=with_elr), running(with_elr=with_elr)
    stopped = (*apart.shut_down(), *apart.fence())
    assert decide_leave(together.image, 1, together.epoch).records == stopped
    together.write(*stopped)
    epoch = apart.epoch
    joined = (*apart.register(epoch), *apart.unfence())
    assert decide_join(together.image, ME, clean_shutdown_epoch=epoch).records == joined


def test_a_replica_in_a_lost_directory_is_not_elected() -> None:
    cluster = running(with_elr=False)
    cluster.write(change(directories=[DIRECTORY_LOST]))
    cluster.shut_down()
    cluster.fence()
    cluster.register(cluster.epoch)
    assert len(cluster.unfence()) == 1


def test_another_replica_in_sync_takes_over() -> None:
    cluster = running(with_elr=False)
    cluster.write(
        RegisterBrokerRecord(
            broker_id=2, incarnation_id=TOPIC, broker_epoch=99, end_points=[], features=[], rack=None, fenced=False
        ),
        change(replicas=[1, 2], isr=[1, 2], directories=[DIRECTORY, DIRECTORY]),
    )
    assert cluster.shut_down()[1:] == (change(isr=[2], leader=2),)


def test_producer_ids_come_in_blocks_that_never_overlap() -> None:
    cluster = running(with_elr=False)
    blocks = []
    for _ in range(3):
        decision = decide_allocate_producer_ids(cluster.image, 1, cluster.epoch)
        cluster.write(*decision.records)
        blocks.append(decision.response)
    assert blocks == [range(1000), range(1000, 2000), range(2000, 3000)]


def test_who_is_not_registered_or_registered_again_since_is_refused() -> None:
    cluster = running(with_elr=False)
    with pytest.raises(BrokerIdNotRegistered):
        decide_unfence_broker(cluster.image, 7, 1)
    with pytest.raises(StaleBrokerEpoch):
        decide_allocate_producer_ids(cluster.image, 1, cluster.epoch - 1)
