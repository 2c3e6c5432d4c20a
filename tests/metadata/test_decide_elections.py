"""ElectLeaders: preferred leaders come back, unclean ones only where nothing else is left."""

from __future__ import annotations

import pytest
from tests.metadata.clusters import after, cluster, fence, topic, with_records, with_topics

from millstream.metadata.decide_elections import decide_elect_leaders
from millstream.metadata.image import NO_LEADER, RECOVERING
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord

PREFERRED, UNCLEAN = 0, 1
IMAGE = with_topics(cluster([1, 2, 3]), topic("t", assigned={0: [1, 2, 3], 1: [2, 3, 1]}))
TOPIC_ID = IMAGE.topics.by_name["t"].id


def change(image, partition=0, **fields):
    return with_records(image, PartitionChangeRecord(partition_id=partition, topic_id=TOPIC_ID, **fields))


def elect(image, partitions=(0,), kind=PREFERRED, name="t"):
    asked = None if partitions is None else [TopicPartitions(topic=name, partitions=list(partitions))]
    return decide_elect_leaders(image, ElectLeadersRequest(election_type=kind, topic_partitions=asked))


def codes(decision):
    return {
        (topic.topic, result.partition_id): ErrorCode(result.error_code)
        for topic in decision.response.replica_election_results
        for result in topic.partition_result
    }


def partition(image, number=0):
    return image.topics.by_name["t"].partitions[number]


def test_the_preferred_leader_takes_over_in_a_new_epoch():
    image = change(IMAGE, leader=2)
    decision = elect(image)
    assert codes(decision) == {("t", 0): ErrorCode.NONE}
    now = partition(after(image, decision))
    assert (now.leader, now.leader_epoch) == (1, 2)
    assert now.isr == (1, 2, 3)


def test_a_preferred_leader_out_of_sync_is_not_available():
    image = change(IMAGE, leader=2, isr=[2, 3])
    decision = elect(image)
    assert codes(decision) == {("t", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert decision.records == ()


def test_who_leads_already_needs_no_election():
    assert codes(elect(IMAGE)) == {("t", 0): ErrorCode.ELECTION_NOT_NEEDED}
    assert codes(elect(IMAGE, kind=UNCLEAN)) == {("t", 0): ErrorCode.ELECTION_NOT_NEEDED}


def test_an_election_everywhere_tells_only_of_what_happened():
    image = change(IMAGE, partition=1, leader=3)
    assert codes(elect(image, None)) == {("t", 1): ErrorCode.NONE}


def test_an_unclean_election_loses_what_only_the_dead_had_and_says_so():
    image = fence(change(IMAGE, leader=NO_LEADER, isr=[1]), 1)
    decision = elect(image, kind=UNCLEAN)
    now = partition(after(image, decision))
    assert (now.leader, now.isr, now.leader_recovery_state) == (2, (2,), RECOVERING)


def test_an_unclean_election_prefers_who_is_in_sync():
    image = fence(change(IMAGE, leader=NO_LEADER, isr=[3]), 1)
    now = partition(after(image, elect(image, kind=UNCLEAN)))
    assert (now.leader, now.isr, now.leader_recovery_state) == (3, (3,), 0)


def test_without_a_living_replica_there_is_nobody_to_elect():
    image = fence(change(IMAGE, leader=NO_LEADER, isr=[1]), 1, 2, 3)
    assert codes(elect(image, kind=UNCLEAN)) == {("t", 0): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


@pytest.mark.parametrize(("name", "number"), [("nope", 0), ("t", 9)])
def test_what_does_not_exist_is_said_so(name, number):
    assert codes(elect(IMAGE, [number], name=name)) == {(name, number): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_an_unknown_kind_of_election_is_refused_as_a_whole():
    decision = elect(IMAGE, kind=7)
    assert decision.response.error_code == ErrorCode.INVALID_REQUEST
    assert codes(decision) == {("t", 0): ErrorCode.INVALID_REQUEST}
