"""The high watermark follows the slowest replica in sync, never goes back, and waits for enough replicas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.protocol.errors import FencedLeaderEpoch, NotEnoughReplicas, UnknownLeaderEpoch
from millstream.replication.leader import PartitionLeader


def leader_of(replicas: tuple[int, ...], isr: tuple[int, ...], min_isr: int = 1) -> PartitionLeader:
    return PartitionLeader(node_id=1, epoch=5, replicas=replicas, isr=isr, min_isr=min_isr, own_end=0, high_watermark=0)


def reached(leader: PartitionLeader, replica: int, end_offset: int) -> bool:
    return leader.follower_fetched(leader.followers[replica], end_offset, leader_end=leader.own_end, now_ms=0)


def test_alone_the_leader_commits_what_it_wrote() -> None:
    leader = leader_of((1,), (1,))
    assert leader.own_log_reached(10)
    assert leader.high_watermark == 10
    assert not leader.own_log_reached(10)


def test_followers_in_sync_hold_the_mark_back() -> None:
    leader = leader_of((1, 2, 3), (1, 2, 3))
    assert not leader.own_log_reached(10)
    assert not reached(leader, 2, 8)
    assert reached(leader, 3, 4)
    assert leader.high_watermark == 4


def test_a_shrunk_isr_lets_the_mark_go_on() -> None:
    """KAFKA-13091: the mark must not stay where the lost follower was."""
    leader = leader_of((1, 2), (1, 2))
    leader.own_log_reached(10)
    assert leader.committed(isr=(1,), partition_epoch=1)
    assert leader.high_watermark == 10


def test_below_the_minimum_nothing_is_committed_or_accepted() -> None:
    leader = leader_of((1, 2, 3), (1,), min_isr=2)
    assert not leader.own_log_reached(10)
    with pytest.raises(NotEnoughReplicas):
        leader.check_enough_in_sync()


def test_a_single_replica_needs_only_itself_whatever_the_minimum() -> None:
    leader = leader_of((1,), (1,), min_isr=3)
    leader.check_enough_in_sync()
    assert leader.own_log_reached(1)


@pytest.mark.parametrize(("asked", "refusal"), [(4, FencedLeaderEpoch), (6, UnknownLeaderEpoch)])
def test_a_client_with_another_epoch_is_told(asked: int, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        leader_of((1,), (1,)).check_epoch(asked)


def test_no_epoch_or_the_same_is_fine() -> None:
    leader_of((1,), (1,)).check_epoch(-1)
    leader_of((1,), (1,)).check_epoch(5)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 100))))
def test_the_mark_never_goes_back_nor_beyond_a_replica_in_sync(events: list[tuple[int, int]]) -> None:
    leader = leader_of((1, 2, 3), (1, 2, 3))
    ends = {1: 0, 2: 0, 3: 0}
    for replica, end in events:
        before = leader.high_watermark
        ends[replica] = max(ends[replica], end)
        if replica == 1:
            leader.own_log_reached(ends[1])
        else:
            reached(leader, replica, ends[replica])
        assert before <= leader.high_watermark <= min(ends.values())
