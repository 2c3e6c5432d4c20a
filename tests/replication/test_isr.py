"""Who is in sync: in once caught up and safe to elect, out after too long; and the mark respects what is pending."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.protocol.errors import NotLeader, UnknownLeaderEpoch
from millstream.replication.leader import PartitionLeader

if TYPE_CHECKING:
    from millstream.replication.followers import Follower

LAG_MS = 100


def leader_of(isr: tuple[int, ...], *, own_end: int = 0, mark: int = 0, start: int = 0) -> PartitionLeader:
    return PartitionLeader(
        node_id=1, epoch=5, replicas=(1, 2, 3), isr=isr, min_isr=1, own_end=own_end, high_watermark=mark,
        partition_epoch=7, epoch_start_offset=start,
    )  # fmt: skip


def fetched(leader: PartitionLeader, replica: int, end: int, now_ms: int = 0, broker_epoch: int = 0) -> Follower:
    follower = leader.follower(replica, 5)
    leader.follower_fetched(follower, end, broker_epoch=broker_epoch, leader_end=leader.own_end, now_ms=now_ms)
    return follower


def test_who_reached_the_mark_and_the_epochs_start_may_join() -> None:
    leader = leader_of((1,), own_end=10, mark=6, start=8)
    assert leader.high_watermark == 10, "alone in sync, the leader commits what it has"
    leader = leader_of((1, 2), own_end=10, mark=6, start=8)
    assert not leader.may_join(fetched(leader, 3, 5)), "below the mark"
    assert not leader.may_join(fetched(leader, 3, 7)), "below the start of the epoch, where the true mark may be"
    assert leader.may_join(fetched(leader, 3, 8))


def test_members_do_not_join_again_and_one_proposal_is_made_at_a_time() -> None:
    leader = leader_of((1, 2))
    assert not leader.may_join(fetched(leader, 2, 0))
    follower = fetched(leader, 3, 0)
    proposal = leader.propose((1, 2, 3), own_broker_epoch=40)
    assert not leader.may_join(follower)
    assert (proposal.leader_epoch, proposal.partition_epoch) == (5, 7)
    assert proposal.isr == ((1, 40), (2, 0), (3, 0))


def test_a_follower_that_has_not_fetched_in_this_epoch_is_proposed_without_its_broker_epoch() -> None:
    assert leader_of((1, 2)).propose((1, 2), own_broker_epoch=40).isr == ((1, 40), (2, -1))


def test_the_mark_waits_for_whoever_may_be_in_sync_by_now() -> None:
    """KIP-497: the controller may have agreed to an addition before its answer came."""
    leader = leader_of((1, 2))
    follower = fetched(leader, 3, 0)
    proposal = leader.propose((1, 2, 3), own_broker_epoch=0)
    leader.own_log_reached(10)
    fetched(leader, 2, 10)
    assert leader.high_watermark == 0
    assert leader.withdraw(proposal), "refused for good: it does not count any more"
    assert leader.high_watermark == 10
    assert not follower.holds_back


def test_the_mark_counts_who_leaves_until_the_controller_agreed() -> None:
    leader = leader_of((1, 2))
    leader.own_log_reached(10)
    leader.propose((1,), own_broker_epoch=0)
    assert leader.high_watermark == 0
    assert leader.committed(isr=(1,), partition_epoch=8)
    assert leader.high_watermark == 10


def test_old_news_are_passed_over_and_the_same_ones_change_nothing() -> None:
    leader = leader_of((1, 2))
    leader.committed(isr=(1, 2, 3), partition_epoch=9)
    leader.committed(isr=(1,), partition_epoch=8)
    assert leader.isr == (1, 2, 3)
    leader.committed(isr=(1,), partition_epoch=9)
    assert leader.isr == (1, 2, 3)


def test_newer_metadata_end_a_proposal() -> None:
    leader = leader_of((1, 2))
    proposal = leader.propose((1,), own_broker_epoch=0)
    leader.committed(isr=(1, 2), partition_epoch=8)
    assert leader.proposal is None
    assert not leader.withdraw(proposal)


def test_new_replicas_come_in_as_strangers_and_old_ones_keep_their_place() -> None:
    leader = leader_of((1, 2))
    fetched(leader, 2, 4)
    leader.committed(isr=(1, 2), partition_epoch=8, replicas=(1, 2, 4))
    assert leader.followers[2].end_offset == 4
    assert leader.followers[4].end_offset == -1
    assert 3 not in leader.followers


def test_a_stranger_is_asked_to_try_again() -> None:
    with pytest.raises(UnknownLeaderEpoch):
        leader_of((1,)).follower(9, 5)
    with pytest.raises(NotLeader):
        leader_of((1,)).follower(9, -1)


def test_the_fetch_of_an_earlier_process_is_refused() -> None:
    leader = leader_of((1, 2))
    fetched(leader, 2, 4, broker_epoch=11)
    with pytest.raises(NotLeader):
        fetched(leader, 2, 9, broker_epoch=10)
    assert leader.followers[2].end_offset == 4


class TestLag:
    def test_who_is_in_sync_has_the_whole_time_to_show_it(self) -> None:
        leader = leader_of((1, 2), own_end=10)
        assert leader.lagging(10, LAG_MS, LAG_MS) == ()
        assert leader.lagging(10, LAG_MS + 1, LAG_MS) == (2,)

    def test_who_has_everything_does_not_lag_however_long_it_is_silent(self) -> None:
        leader = leader_of((1, 2), own_end=10)
        fetched(leader, 2, 10)
        assert leader.lagging(10, 100 * LAG_MS, LAG_MS) == ()
        assert leader.lagging(11, 100 * LAG_MS, LAG_MS) == (2,)

    def test_steady_fetching_under_load_is_in_sync(self) -> None:
        """Always a little behind, but never behind where the leader was at the fetch before."""
        leader = leader_of((1, 2))
        for turn in range(1, 50):
            leader.own_log_reached(10 * turn)
            fetched(leader, 2, 10 * (turn - 1), now_ms=turn * 30)
            assert leader.lagging(10 * turn, turn * 30, LAG_MS) == ()

    def test_falling_behind_is_noticed_although_it_fetches(self) -> None:
        leader = leader_of((1, 2))
        for turn in range(1, 10):
            leader.own_log_reached(10 * turn)
            fetched(leader, 2, turn, now_ms=turn * 30)
        assert leader.lagging(90, 270, LAG_MS) == (2,)


def test_the_mark_waits_for_a_follower_that_is_about_to_join() -> None:
    """Or a leader alone in sync would be ahead of it for ever under load."""
    leader = leader_of((1,), own_end=10)
    follower = fetched(leader, 2, 10)
    assert leader.high_watermark == 10
    leader.waits_for(follower, waits=True)
    leader.own_log_reached(20)
    assert leader.high_watermark == 10
    assert leader.may_join(follower)
    assert leader.waits_for(follower, waits=False), "it fell behind after all"
    assert leader.high_watermark == 20


def test_a_smaller_minimum_frees_the_mark() -> None:
    leader = leader_of((1,), own_end=10)
    leader.min_isr_changed(2)
    assert not leader.own_log_reached(20)
    assert leader.min_isr_changed(1)
    assert leader.high_watermark == 20
