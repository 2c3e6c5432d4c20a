"""The quorum's rules, one at a time: coming up, elections, following; what leaders may do is in test_leading.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.protocol.error_codes import ErrorCode
from millstream.quorum.election_state import ElectionState
from millstream.quorum.events import (
    Announce,
    Answer,
    Append,
    Commit,
    Discover,
    EpochSeen,
    FetchAnswered,
    FetchRequested,
    Flushed,
    Follow,
    Lead,
    LeaderAnnounced,
    LeaderLost,
    LeaderRetired,
    LoadSnapshot,
    Persist,
    RequestVotes,
    Started,
    Truncate,
    VoteAnswered,
    VoteRequested,
    Wake,
    Woken,
)
from millstream.quorum.node import BrokenQuorum, QuorumNode
from millstream.quorum.positions import LogPosition
from millstream.quorum.roles import Follower, Prospective, Unattached
from tests.quorum.machines import (
    ELSEWHERE,
    HERE,
    THREE,
    TWO,
    append,
    asked,
    candidate_of_three,
    feed,
    log_of,
    node,
)

if TYPE_CHECKING:
    from millstream.quorum.events import Event


def test_a_lone_voter_leads_a_new_epoch_as_soon_as_it_starts() -> None:
    machine = node(1)
    assert feed(machine, Started()) == [
        Persist(ElectionState(epoch=1, voted_id=1)),
        Persist(ElectionState(epoch=1, leader_id=1)),
        Lead(1, (1,), (1,)),
    ]
    assert machine.leads
    assert machine.leader_id == 1


def test_a_voter_of_a_dynamic_quorum_votes_with_its_directory() -> None:
    effects = feed(node(1, directory_id=HERE), Started())
    assert effects[0] == Persist(ElectionState(epoch=1, voted_id=1, voted_directory_id=HERE))


def test_a_leader_never_takes_up_its_old_epoch_again() -> None:
    machine = node(1, state=ElectionState(epoch=7, leader_id=1), log=log_of(7))
    assert feed(machine, Started())[-1] == Lead(8, (1,), (1,))


def test_an_epoch_that_only_the_log_remembers_is_passed_over() -> None:
    assert feed(node(1, state=ElectionState(epoch=2), log=log_of(9)), Started())[-1] == Lead(10, (1,), (1,))


def test_a_lone_voter_commits_what_it_has_flushed() -> None:
    machine = node(1, log=log_of(3, 3, 3, 3, 3))
    feed(machine, Started())
    assert feed(machine, Flushed(6)) == [Commit(6)]
    assert feed(machine, Flushed(6)) == []
    assert machine.high_watermark == 6


def test_nothing_is_committed_before_the_first_record_of_the_epoch() -> None:
    machine = node(1, log=log_of(3, 3, 3, 3, 3))
    feed(machine, Started())
    assert feed(machine, Flushed(5)) == []


def test_a_directory_that_does_not_vote_looks_for_a_leader_and_never_stands() -> None:
    machine = node(1, directory_id=ELSEWHERE)
    assert feed(machine, Started()) == [Discover(), Wake(499)]
    assert feed(machine, Woken())[0] == Discover()
    assert isinstance(machine.role, Unattached)


# Elections


def test_one_of_three_first_asks_whether_it_would_be_elected_and_changes_nothing_by_that() -> None:
    machine = node(1, 2, 3, log=log_of(2, 2))
    feed(machine, Started())
    effects = feed(machine, Woken())
    assert effects[0] == RequestVotes(2, (TWO, THREE), LogPosition(2, 2), pre_vote=True)
    assert not any(isinstance(effect, Persist) for effect in effects)
    assert isinstance(machine.role, Prospective)


def test_with_a_majority_that_would_it_stands_and_with_one_that_did_it_leads() -> None:
    machine = candidate_of_three(2, 2)
    assert machine.state == ElectionState(epoch=3, voted_id=1)
    assert feed(machine, VoteAnswered(2, 3, granted=False)) == []
    effects = feed(machine, VoteAnswered(3, 3, granted=True))
    assert effects[:3] == [
        Persist(ElectionState(epoch=3, leader_id=1)),
        Lead(3, (1, 2, 3), (1, 3)),
        Announce(3, (TWO, THREE)),
    ]


def test_answers_to_another_question_and_of_strangers_do_not_count() -> None:
    machine = candidate_of_three()
    assert feed(machine, VoteAnswered(2, 0, granted=True)) == []
    assert feed(machine, VoteAnswered(9, 1, granted=True)) == []
    assert feed(machine, VoteAnswered(2, 1, granted=True, pre_vote=True)) == []
    assert not machine.leads


def test_who_would_not_be_elected_goes_back_to_the_leader_that_it_knows() -> None:
    machine = node(1, 2, 3)
    feed(machine, Started(), LeaderAnnounced(2, 4), Woken())
    assert isinstance(machine.role, Prospective)
    feed(machine, VoteAnswered(2, 4, granted=False, pre_vote=True))
    effects = feed(machine, VoteAnswered(3, 4, granted=False, pre_vote=True))
    assert effects[0] == Follow(4, 2)


def test_others_who_still_follow_do_not_keep_one_from_missing_the_leader() -> None:
    machine = node(1, 2, 3)
    feed(machine, Started(), LeaderAnnounced(2, 4), Woken())
    assert feed(machine, EpochSeen(4, 2)) == []
    assert isinstance(machine.role, Prospective)
    feed(machine, LeaderAnnounced(2, 4))
    assert isinstance(machine.role, Follower)


def test_a_vote_is_given_once_in_an_epoch_and_is_on_disk_before_it_is_told() -> None:
    machine = node(1, 2, 3)
    feed(machine, Started())
    effects = feed(machine, VoteRequested(TWO, 5, LogPosition(0, 0)))
    assert Persist(ElectionState(epoch=5, voted_id=2)) in effects
    assert effects[-1] == Answer(granted=True)
    assert asked(machine, VoteRequested(TWO, 5, LogPosition(0, 0))).granted
    assert not asked(machine, VoteRequested(THREE, 5, LogPosition(9, 4))).granted
    assert asked(machine, VoteRequested(THREE, 4, LogPosition(9, 4))).error is ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize(
    ("end", "granted"),
    [
        (LogPosition(1, 3), False),
        (LogPosition(9, 2), False),
        (LogPosition(2, 3), True),
        (LogPosition(3, 3), True),
        (LogPosition(1, 4), True),
    ],
)
def test_only_a_log_that_is_as_new_as_ours_gets_the_vote(end: LogPosition, granted: bool) -> None:
    for pre_vote in (False, True):
        machine = node(1, 2, 3, log=log_of(2, 3))
        feed(machine, Started())
        assert asked(machine, VoteRequested(TWO, 7, end, pre_vote)).granted is granted


def test_a_voter_that_hears_from_a_leader_supports_nobody_else() -> None:
    machine = node(1, 2, 3)
    feed(machine, Started(), LeaderAnnounced(2, 4))
    assert asked(machine, VoteRequested(THREE, 4, LogPosition(0, 0), pre_vote=True)).granted
    feed(machine, FetchAnswered(2, 4))
    assert not asked(machine, VoteRequested(THREE, 4, LogPosition(0, 0), pre_vote=True)).granted
    assert not asked(machine, VoteRequested(THREE, 4, LogPosition(0, 0))).granted


def test_no_vote_is_given_in_an_epoch_that_this_node_led_before_it_was_restarted() -> None:
    machine = node(1, 2, 3, state=ElectionState(epoch=6, leader_id=1))
    feed(machine, Started())
    assert not asked(machine, VoteRequested(TWO, 6, LogPosition(9, 5))).granted


def test_a_leader_that_is_gone_is_missed_sooner_than_one_that_is_silent() -> None:
    machine = node(1, 2, 3)
    feed(machine, Started(), LeaderAnnounced(2, 4), FetchAnswered(2, 4))
    assert feed(machine, LeaderLost(2, 4)) == [Wake(249)]
    assert feed(machine, LeaderLost(3, 4)) == []


# Following


def follower(*epochs: int, epoch: int = 5) -> QuorumNode:
    machine = node(1, 2, 3, log=log_of(*epochs))
    feed(machine, Started(), LeaderAnnounced(2, epoch))
    return machine


def test_a_follower_commits_what_the_leader_says_once_it_has_it_on_disk() -> None:
    machine = follower(1, 1)
    assert feed(machine, FetchAnswered(2, 5, 4, ["three", "four"]))[1:] == [Append(["three", "four"])]
    append(machine, 2)
    assert feed(machine, Flushed(3)) == [Commit(3)]
    assert feed(machine, Flushed(4)) == [Commit(4)]
    assert feed(machine, FetchAnswered(2, 5, 4))[1:] == []


def test_a_follower_cuts_its_log_where_it_parts_from_the_leaders() -> None:
    assert Truncate(2) in feed(follower(1, 1, 2, 2), FetchAnswered(2, 5, diverging=LogPosition(3, 1)))
    assert Truncate(3) in feed(follower(1, 1, 2, 2), FetchAnswered(2, 5, diverging=LogPosition(3, 2)))
    assert Truncate(2) in feed(follower(1, 1, 3, 3), FetchAnswered(2, 5, diverging=LogPosition(9, 2)))


def test_what_is_committed_is_never_cut_off() -> None:
    """Bug 14, KAFKA-12460: a node that would have to stops instead."""
    machine = follower(1, 1, 2, 2)
    feed(machine, FetchAnswered(2, 5, 4))
    assert machine.high_watermark == 4
    with pytest.raises(BrokenQuorum, match="committed"):
        feed(machine, FetchAnswered(2, 5, diverging=LogPosition(3, 2)))


def test_a_follower_that_is_too_far_behind_takes_a_snapshot() -> None:
    at = LogPosition(40, 3)
    assert LoadSnapshot(at) in feed(follower(1), FetchAnswered(2, 5, snapshot=at))


def test_an_answer_from_another_epoch_or_leader_is_ignored() -> None:
    machine = follower(1)
    assert feed(machine, FetchAnswered(2, 4, 1, ["x"])) == []
    assert feed(machine, FetchAnswered(3, 5, 1, ["x"])) == []


events = st.one_of(
    st.just(Woken()),
    st.builds(VoteAnswered, st.integers(1, 4), st.integers(0, 6), st.booleans(), st.booleans()),
    st.builds(
        VoteRequested,
        st.sampled_from([TWO, THREE]),
        st.integers(0, 6),
        st.builds(LogPosition, st.integers(0, 6), st.integers(0, 3)),
        st.booleans(),
    ),
    st.builds(Flushed, st.integers(0, 3)),
    st.builds(FetchRequested, st.sampled_from([TWO, THREE]), st.integers(0, 6), st.just(LogPosition(3, 1))),
    st.builds(EpochSeen, st.integers(0, 6), st.sampled_from([-1, 2, 3])),
    st.builds(LeaderRetired, st.sampled_from([2, 3]), st.integers(0, 6), st.just((1,))),
)


@given(st.lists(events, max_size=30))
def test_epochs_and_the_high_watermark_never_go_back_and_one_vote_is_given_per_epoch(happens: list[Event]) -> None:
    machine = node(1, 2, 3, log=log_of(1, 1, 1))
    feed(machine, Started())
    epoch, committed = machine.epoch, machine.high_watermark
    votes: dict[int, int] = {}
    for event in happens:
        try:
            effects = feed(machine, event)
        except BrokenQuorum:
            # Two leaders in one epoch is what the other voters' votes rule out.
            return
        for effect in effects:
            if isinstance(effect, Persist) and effect.state.voted_id != -1:
                assert votes.setdefault(effect.state.epoch, effect.state.voted_id) == effect.state.voted_id
        assert machine.epoch >= epoch
        assert machine.high_watermark >= committed
        epoch, committed = machine.epoch, machine.high_watermark
