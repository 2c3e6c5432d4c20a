"""AlterPartition: a leader's report counts if it is of this very partition, and of brokers that take part."""

from __future__ import annotations

import pytest
from tests.metadata.clusters import after, cluster, fence, topic, with_records, with_topics

from millstream.metadata.broker_lifecycle import StaleBrokerEpoch
from millstream.metadata.decide_alter_partition import decide_alter_partition
from millstream.metadata.decide_reassignments import decide_alter_reassignments
from millstream.metadata.image import RECOVERED, RECOVERING
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from millstream.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord
from millstream.protocol.uuid import Uuid

IMAGE = with_topics(cluster([1, 2, 3, 4]), topic("t", assigned={0: [1, 2, 3]}))
TOPIC_ID = IMAGE.topics.by_name["t"].id


def partition(image):
    return image.topics.by_name["t"].partitions[0]


def change(image, **fields):
    return with_records(image, PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields))


def alter(image, isr, *, leader=1, leader_epoch=None, partition_epoch=None, epochs=None, recovery=RECOVERED, **where):
    known = partition(image)
    request = AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=image.brokers[leader].epoch,
        topics=[
            TopicData(
                topic_id=where.get("topic_id", TOPIC_ID),
                partitions=[
                    PartitionData(
                        partition_index=where.get("index", 0),
                        leader_epoch=known.leader_epoch if leader_epoch is None else leader_epoch,
                        partition_epoch=known.partition_epoch if partition_epoch is None else partition_epoch,
                        new_isr_with_epochs=[
                            BrokerState(
                                broker_id=each,
                                broker_epoch=(epochs or {}).get(
                                    each, image.brokers[each].epoch if each in image.brokers else -1
                                ),
                            )
                            for each in isr
                        ],
                        leader_recovery_state=recovery,
                    )
                ],
            )
        ],
    )
    return decide_alter_partition(image, request, 3)


def answer(decision):
    return decision.response.topics[0].partitions[0]


def code(decision):
    return ErrorCode(answer(decision).error_code)


def test_the_isr_shrinks_and_grows_in_the_same_leader_epoch():
    decision = alter(IMAGE, [1, 3])
    image = after(IMAGE, decision)
    assert (partition(image).isr, partition(image).leader_epoch, partition(image).partition_epoch) == ((1, 3), 0, 1)
    assert (answer(decision).isr, answer(decision).partition_epoch) == ([1, 3], 1)
    image = after(image, alter(image, [1, 3, 2]))
    assert partition(image).isr == (1, 3, 2)


def test_a_report_that_changes_nothing_writes_nothing():
    decision = alter(IMAGE, [1, 2, 3])
    assert (code(decision), decision.records) == (ErrorCode.NONE, ())


@pytest.mark.parametrize(
    ("isr", "fields", "expected"),
    [
        ([1, 2], {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1, 2], {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1, 2], {"leader": 2}, ErrorCode.INVALID_REQUEST),
        ([2, 3], {}, ErrorCode.INVALID_REQUEST),
        ([1, 4], {}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"recovery": RECOVERING}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"recovery": 7}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"epochs": {2: 1}}, ErrorCode.INELIGIBLE_REPLICA),
        ([1, 2], {"topic_id": Uuid(b"x" * 16)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ([1, 2], {"index": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_cannot_be_is_refused(isr, fields, expected):
    decision = alter(IMAGE, isr, **fields)
    assert (code(decision), decision.records) == (expected, ())


def test_a_report_that_was_overtaken_is_refused():
    newer_leader = change(IMAGE, leader=1)
    assert code(alter(newer_leader, [1, 2], leader_epoch=0)) is ErrorCode.FENCED_LEADER_EPOCH
    changed = change(IMAGE, isr=[1, 2])
    assert code(alter(changed, [1, 3], partition_epoch=0)) is ErrorCode.INVALID_UPDATE_VERSION


def test_a_fenced_broker_does_not_enter_the_isr():
    image = fence(change(IMAGE, isr=[1, 2]), 3)
    assert code(alter(image, [1, 2, 3])) is ErrorCode.INELIGIBLE_REPLICA


def test_an_earlier_life_of_the_leader_is_refused_as_a_whole():
    request = AlterPartitionRequest(broker_id=1, broker_epoch=3, topics=[])
    with pytest.raises(StaleBrokerEpoch):
        decide_alter_partition(IMAGE, request, 3)


def test_a_leader_that_has_recovered_says_so():
    image = change(IMAGE, isr=[1], leader_recovery_state=RECOVERING)
    image = after(image, alter(image, [1], recovery=RECOVERED))
    assert partition(image).leader_recovery_state == RECOVERED


def test_the_report_that_completes_a_move_takes_the_leader_away():
    move = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[4])])]
    )
    image = after(IMAGE, decide_alter_reassignments(IMAGE, move))
    decision = alter(image, [1, 2, 3, 4])
    assert code(decision) is ErrorCode.NEW_LEADER_ELECTED
    now = partition(after(image, decision))
    assert (now.replicas, now.isr, now.leader, now.leader_epoch) == ((4,), (4,), 4, 1)


def test_before_version_3_brokers_are_known_by_their_number_only():
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=IMAGE.brokers[1].epoch,
        topics=[
            TopicData(
                topic_id=TOPIC_ID,
                partitions=[PartitionData(partition_index=0, leader_epoch=0, partition_epoch=0, new_isr=[1, 2])],
            )
        ],
    )
    assert partition(after(IMAGE, decide_alter_partition(IMAGE, request, 2))).isr == (1, 2)
