"""What a leader of the quorum may do: commit what a majority holds, while a majority listens, and then resign."""

from __future__ import annotations

from dataclasses import replace

import pytest

from millstream.protocol.error_codes import ErrorCode
from millstream.protocol.uuid import ZERO_UUID
from millstream.quorum.election_state import ElectionState
from millstream.quorum.events import (
    Announce,
    Answer,
    AnswerFetch,
    Commit,
    EpochSeen,
    FetchAnswered,
    FetchRequested,
    Flushed,
    Follow,
    LeaderAnnounced,
    LeaderRetired,
    Persist,
    PieceRequested,
    Retire,
    Started,
    StepDown,
    Stopping,
    VoteAnswered,
    VoteRequested,
    VotersChanged,
    Wake,
    Woken,
)
from millstream.quorum.node import BrokenQuorum
from millstream.quorum.positions import LogPosition
from millstream.quorum.roles import Follower, Leader, Prospective, ReplicaKey, Resigned, Unattached
from millstream.quorum.voters import STATIC, Voter, VoterSet
from tests.quorum.machines import (
    THREE,
    TWO,
    append,
    asked,
    feed,
    fetched,
    leader_of_three,
    log_of,
    node,
)


def test_a_majority_must_hold_a_record_before_it_is_committed() -> None:
    machine = leader_of_three()
    append(machine, 10)
    assert feed(machine, Flushed(10)) == []
    assert fetched(machine, THREE, 4, 1) == [Commit(4), AnswerFetch()]
    assert fetched(machine, TWO, 10, 1) == [Commit(10), AnswerFetch()]


def test_a_replica_that_is_not_a_voter_commits_nothing() -> None:
    machine = leader_of_three()
    append(machine, 10)
    feed(machine, Flushed(10))
    assert fetched(machine, ReplicaKey(8, ZERO_UUID), 10, 1) == [AnswerFetch()]


def test_a_leader_without_a_majority_resigns_and_never_votes_in_its_epoch() -> None:
    machine = leader_of_three()
    effects = feed(machine, Woken())
    assert effects[:2] == [StepDown(), Retire(1, (TWO, THREE))]
    assert isinstance(machine.role, Resigned)
    assert not asked(machine, VoteRequested(TWO, 1, LogPosition(9, 1))).granted


def test_a_leader_that_is_heard_goes_on_and_reminds_those_who_are_silent() -> None:
    machine = leader_of_three()
    append(machine, 1)
    machine.step(FetchRequested(TWO, 1, LogPosition(1, 1)), 900)
    assert machine.step(Woken(), 1_000) == [Announce(1, (THREE,)), Wake(2_000)]


def test_a_leader_that_stops_names_the_longest_log_first() -> None:
    machine = leader_of_three()
    append(machine, 4)
    fetched(machine, THREE, 4, 1)
    assert feed(machine, Stopping())[:2] == [StepDown(), Retire(1, (THREE, TWO))]


def test_the_first_successor_stands_at_once() -> None:
    machine = node(1, 2, 3)
    feed(machine, Started(), LeaderAnnounced(2, 4), FetchAnswered(2, 4))
    assert feed(machine, LeaderRetired(2, 4, (1, 3))) == [Wake(0), Answer()]
    assert isinstance(machine.role, Follower)
    feed(machine, Woken())
    assert isinstance(machine.role, Prospective)


def test_a_newer_epoch_ends_the_leadership() -> None:
    machine = leader_of_three()
    effects = feed(machine, EpochSeen(5, 2))
    assert effects[:3] == [Persist(ElectionState(epoch=5, leader_id=2)), StepDown(), Follow(5, 2)]
    assert not machine.leads


def test_an_older_epoch_is_ignored() -> None:
    machine = leader_of_three()
    assert feed(machine, EpochSeen(0, 2)) == []
    assert machine.leads


def test_a_second_leader_of_an_epoch_is_a_broken_quorum() -> None:
    with pytest.raises(BrokenQuorum, match="leaders 1 and 2"):
        feed(leader_of_three(), EpochSeen(1, 2))


def test_fewer_voters_can_commit_what_waited_for_more() -> None:
    machine = leader_of_three()
    append(machine, 10)
    feed(machine, Flushed(10))
    assert Commit(10) in feed(machine, VotersChanged(VoterSet((Voter(1),)), STATIC))


def test_a_leader_that_was_removed_resigns_once_that_is_committed() -> None:
    machine = leader_of_three()
    append(machine, 2)
    assert StepDown() not in feed(machine, VotersChanged(VoterSet((Voter(2), Voter(3))), STATIC, offset=1))
    fetched(machine, TWO, 2, 1)
    assert machine.leads
    effects = fetched(machine, THREE, 2, 1)
    assert effects[:2] == [Commit(2), StepDown()]


def test_who_was_removed_may_be_elected_until_that_is_committed() -> None:
    """It may have the only log that is long enough; with two voters nobody else could be elected then."""
    machine = node(2, 3, log=log_of(1, 1))
    machine._former_voters, machine._voters_offset = VoterSet((Voter(1), Voter(2), Voter(3))), 1
    feed(machine, Started(), Woken())
    assert isinstance(machine.role, Prospective)
    feed(machine, VoteAnswered(2, 1, granted=True, pre_vote=True))
    assert isinstance(machine.role, Prospective), "its own opinion does not count"
    feed(machine, LeaderAnnounced(2, 4), FetchAnswered(2, 4, 2))
    assert machine.high_watermark == 2
    feed(machine, Woken())
    assert isinstance(machine.role, Unattached)


def test_only_the_leader_of_the_very_epoch_serves_a_fetch() -> None:
    machine = leader_of_three(1)
    assert feed(machine, FetchRequested(TWO, 1, LogPosition(0, 0))) == [AnswerFetch(ErrorCode.FENCED_LEADER_EPOCH)]
    assert feed(machine, FetchRequested(TWO, 3, LogPosition(0, 0))) == [AnswerFetch(ErrorCode.UNKNOWN_LEADER_EPOCH)]
    feed(machine, EpochSeen(3, 2))
    refused = [AnswerFetch(ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    assert feed(machine, FetchRequested(THREE, 3, LogPosition(0, 0))) == refused


def test_a_fetch_that_waits_is_no_sign_of_life_when_it_is_looked_at_again() -> None:
    machine = leader_of_three()
    append(machine, 1)
    came = FetchRequested(TWO, 1, LogPosition(1, 1))
    assert machine.step(came, 100)[-1] == AnswerFetch()
    again = replace(came, is_new=False)
    assert machine.step(again, 600)[-1] == AnswerFetch()
    assert isinstance(machine.role, Leader)
    assert machine.role.voters[2].fetched_ms == 100


def test_a_voter_that_takes_a_snapshot_is_a_sign_of_life_and_holds_nothing_more() -> None:
    machine = leader_of_three()
    append(machine, 1)
    machine.step(FetchRequested(TWO, 1, LogPosition(1, 1)), 100)
    for now_ms in range(1_000, 9_000, 1_000):
        assert machine.step(PieceRequested(TWO, 1), now_ms) == []
        assert StepDown() not in machine.step(Woken(), now_ms)
    assert isinstance(machine.role, Leader)
    two = machine.role.voters[2]
    assert (two.end_offset, two.fetched_ms, two.caught_up_ms, two.heard_ms) == (1, 100, 100, 8_000)
    # Neither one that does not vote, nor one that means another epoch.
    machine.step(PieceRequested(ReplicaKey(8, ZERO_UUID), 1), 11_000)
    machine.step(PieceRequested(TWO, 0), 11_000)
    assert StepDown() in machine.step(Woken(), 11_000)
