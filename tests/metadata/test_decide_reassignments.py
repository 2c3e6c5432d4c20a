"""Moving partitions: both sets of replicas at first, the target alone once it is in sync."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metadata.clusters import after, cluster, directory_of, topic, with_records, with_topics

from millstream.metadata.decide_reassignments import decide_alter_reassignments, list_reassignments
from millstream.metadata.partition_change import Wanted, change_partition
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from millstream.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

IMAGE = with_topics(cluster([1, 2, 3, 4]), topic("t", assigned={0: [1, 2]}))


def move(image, target, *, name="t", number=0, resize=True):
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=resize,
        topics=[
            ReassignableTopic(name=name, partitions=[ReassignablePartition(partition_index=number, replicas=target)])
        ],
    )
    return decide_alter_reassignments(image, request)


def code(decision):
    return ErrorCode(decision.response.responses[0].partitions[0].error_code)


def partition(image):
    return image.topics.by_name["t"].partitions[0]


def caught_up(image, *isr):
    """A leader reports its ISR."""
    record = change_partition(image, image.topics.by_name["t"], 0, Wanted(isr=isr))
    assert record is not None
    return with_records(image, record)


def test_a_move_first_holds_both():
    now = partition(after(IMAGE, move(IMAGE, [3, 4])))
    assert (now.replicas, now.adding, now.removing) == ((3, 4, 1, 2), (3, 4), (1, 2))
    assert (now.leader, now.isr) == (1, (1, 2))
    assert now.directories == tuple(directory_of(replica) for replica in (3, 4, 1, 2))


def test_it_completes_when_all_newcomers_are_in_sync():
    image = after(IMAGE, move(IMAGE, [3, 4]))
    image = caught_up(image, 1, 2, 3)
    assert partition(image).adding == (3, 4)
    image = caught_up(image, 1, 2, 3, 4)
    now = partition(image)
    assert (now.replicas, now.isr, now.adding, now.removing) == ((3, 4), (3, 4), (), ())
    assert now.leader == 3
    assert now.directories == (directory_of(3), directory_of(4))


def test_a_new_order_and_fewer_replicas_are_there_at_once():
    now = partition(after(IMAGE, move(IMAGE, [2, 1])))
    assert (now.replicas, now.leader, now.adding, now.removing) == ((2, 1), 1, (), ())
    now = partition(after(IMAGE, move(IMAGE, [2])))
    assert (now.replicas, now.isr, now.leader) == ((2,), (2,), 2)


def test_the_place_it_has_needs_no_record():
    decision = move(IMAGE, [1, 2])
    assert code(decision) is ErrorCode.NONE
    assert decision.records == ()


def test_a_cancelled_move_leaves_what_was():
    image = after(IMAGE, move(IMAGE, [3, 4]))
    now = partition(after(image, move(image, None)))
    assert (now.replicas, now.isr, now.adding, now.removing) == ((1, 2), (1, 2), (), ())


def test_a_move_can_be_redirected():
    image = after(IMAGE, move(IMAGE, [3, 4]))
    now = partition(after(image, move(image, [4, 1])))
    assert (now.replicas, now.adding, now.removing) == ((4, 1, 2), (4,), (2,))


@pytest.mark.parametrize(
    ("target", "options", "expected"),
    [
        (None, {}, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ([], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([9], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([3], {"resize": False}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ([3], {"number": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([3], {"name": "nope"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_cannot_be_moved_so_is_refused(target, options, expected):
    decision = move(IMAGE, target, **options)
    assert code(decision) is expected
    assert decision.records == ()


def listed(image, asked=None):
    topics = (
        None if asked is None else [ListPartitionReassignmentsTopics(name=n, partition_indexes=i) for n, i in asked]
    )
    answer = list_reassignments(image, ListPartitionReassignmentsRequest(topics=topics))
    return [(topic.name, [partition.partition_index for partition in topic.partitions]) for topic in answer.topics]


def test_moves_that_go_on_are_listed():
    assert listed(IMAGE) == []
    image = after(IMAGE, move(IMAGE, [3, 4]))
    assert listed(image) == listed(image, [("t", [0, 7]), ("nope", [0])]) == [("t", [0])]


@given(
    targets=st.lists(
        st.one_of(st.none(), st.lists(st.integers(1, 4), min_size=1, max_size=4, unique=True)), min_size=1, max_size=5
    ),
    data=st.data(),
)
def test_however_it_is_moved_a_partition_keeps_a_leader_in_sync(targets, data):
    image = IMAGE
    for target in targets:
        image = after(image, move(image, target))
        reported = data.draw(
            st.lists(st.sampled_from(partition(image).replicas), unique=True).map(
                lambda isr, image=image: tuple(isr) if partition(image).leader in isr else partition(image).isr
            )
        )
        record = change_partition(image, image.topics.by_name["t"], 0, Wanted(isr=reported))
        image = image if record is None else with_records(image, record)
        now = partition(image)
        assert now.leader in now.isr
        assert set(now.isr) <= set(now.replicas)
        assert set(now.adding) | set(now.removing) <= set(now.replicas)
        assert len(now.directories) == len(now.replicas) == len(set(now.replicas))
