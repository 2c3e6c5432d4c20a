"""The quorum's rules: one leader per epoch, nothing committed that a majority does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from millstream.protocol.uuid import ZERO_UUID, Uuid
from millstream.quorum.election_state import ElectionState
from millstream.quorum.events import (
    AwaitElection,
    Commit,
    ElectionTimedOut,
    EpochSeen,
    Flushed,
    Follow,
    Lead,
    Persist,
    RequestVotes,
    Started,
    VoteAnswered,
    VoterFetched,
    VotersChanged,
)
from millstream.quorum.node import QuorumNode
from millstream.quorum.voters import DYNAMIC, STATIC, Voter, VoterSet

if TYPE_CHECKING:
    from millstream.quorum.events import Effect, Event

HERE = Uuid(b"h" * 16)
ELSEWHERE = Uuid(b"e" * 16)


def node(*voter_ids: int, state: ElectionState | None = None, directory_id: Uuid = ZERO_UUID) -> QuorumNode:
    return QuorumNode(
        node_id=1,
        directory_id=HERE,
        voters=VoterSet(tuple(Voter(voter_id, directory_id) for voter_id in voter_ids)),
        kraft_version=STATIC if directory_id == ZERO_UUID else DYNAMIC,
        state=state or ElectionState(),
        jitter_ms=lambda bound: bound - 1,
    )


def feed(machine: QuorumNode, *events: Event) -> list[Effect]:
    effects: list[Effect] = []
    for event in events:
        effects = machine.step(event, 0)
    return effects


def test_a_lone_voter_leads_a_new_epoch_as_soon_as_it_starts() -> None:
    machine = node(1)
    assert feed(machine, Started(0, 0)) == [
        Persist(ElectionState(epoch=1, voted_id=1)),
        Persist(ElectionState(epoch=1, leader_id=1)),
        Lead(1, (1,), (1,)),
    ]
    assert machine.leads
    assert machine.leader_id == 1


def test_a_voter_of_a_dynamic_quorum_votes_with_its_directory() -> None:
    effects = feed(node(1, directory_id=HERE), Started(0, 0))
    assert effects[0] == Persist(ElectionState(epoch=1, voted_id=1, voted_directory_id=HERE))


def test_a_leader_never_takes_up_its_old_epoch_again() -> None:
    machine = node(1, state=ElectionState(epoch=7, leader_id=1))
    assert feed(machine, Started(100, 7))[-1] == Lead(8, (1,), (1,))


def test_an_epoch_that_only_the_log_remembers_is_passed_over() -> None:
    assert feed(node(1, state=ElectionState(epoch=2)), Started(100, 9))[-1] == Lead(10, (1,), (1,))


def test_a_lone_voter_commits_what_it_has_flushed() -> None:
    machine = node(1)
    feed(machine, Started(5, 3))
    assert feed(machine, Flushed(6)) == [Commit(6)]
    assert feed(machine, Flushed(6)) == []
    assert machine.high_watermark == 6


def test_nothing_is_committed_before_the_first_record_of_the_epoch() -> None:
    machine = node(1)
    feed(machine, Started(5, 3))
    assert feed(machine, Flushed(5)) == []


def test_a_directory_that_does_not_vote_stays_out() -> None:
    machine = node(1, directory_id=ELSEWHERE)
    assert feed(machine, Started(0, 0)) == [AwaitElection(1999)]
    assert feed(machine, ElectionTimedOut()) == []
    assert not machine.leads


def test_one_of_three_waits_then_asks_and_leads_with_a_majority() -> None:
    machine = node(1, 2, 3)
    assert feed(machine, Started(4, 2)) == [AwaitElection(1999)]
    assert feed(machine, ElectionTimedOut())[1] == RequestVotes(3, (2, 3), 4, 2)
    assert feed(machine, VoteAnswered(2, 3, granted=False)) == []
    assert feed(machine, VoteAnswered(3, 3, granted=True))[-1] == Lead(3, (1, 2, 3), (1, 3))


def test_answers_to_an_older_election_and_of_strangers_do_not_count() -> None:
    machine = node(1, 2, 3)
    feed(machine, Started(0, 0), ElectionTimedOut(), ElectionTimedOut())
    assert feed(machine, VoteAnswered(2, 1, granted=True)) == []
    assert feed(machine, VoteAnswered(9, 2, granted=True)) == []
    assert not machine.leads


def leader_of_three() -> QuorumNode:
    machine = node(1, 2, 3)
    feed(machine, Started(0, 0), ElectionTimedOut(), VoteAnswered(2, 1, granted=True))
    return machine


def test_a_majority_must_hold_a_record_before_it_is_committed() -> None:
    machine = leader_of_three()
    assert feed(machine, Flushed(10)) == []
    assert feed(machine, VoterFetched(3, ZERO_UUID, 4)) == [Commit(4)]
    assert feed(machine, VoterFetched(2, ZERO_UUID, 10)) == [Commit(10)]


def test_a_replica_that_is_not_a_voter_commits_nothing() -> None:
    machine = leader_of_three()
    feed(machine, Flushed(10))
    assert feed(machine, VoterFetched(8, ZERO_UUID, 10)) == []


def test_a_newer_epoch_ends_the_leadership() -> None:
    machine = leader_of_three()
    effects = feed(machine, EpochSeen(5, 2))
    assert effects[:2] == [Persist(ElectionState(epoch=5, leader_id=2)), Follow(5, 2)]
    assert not machine.leads
    assert feed(machine, Flushed(10)) == []


def test_an_older_epoch_is_ignored() -> None:
    machine = leader_of_three()
    assert feed(machine, EpochSeen(0, 2)) == []
    assert machine.leads


def test_fewer_voters_can_commit_what_waited_for_more() -> None:
    machine = leader_of_three()
    feed(machine, Flushed(10))
    assert feed(machine, VotersChanged(VoterSet((Voter(1),)), STATIC)) == [Commit(10)]


events = st.one_of(
    st.just(ElectionTimedOut()),
    st.builds(VoteAnswered, st.integers(1, 4), st.integers(0, 6), st.booleans()),
    st.builds(Flushed, st.integers(0, 20)),
    st.builds(VoterFetched, st.integers(1, 4), st.just(ZERO_UUID), st.integers(0, 20)),
    st.builds(EpochSeen, st.integers(0, 6), st.sampled_from([-1, 2, 3])),
)


@given(st.lists(events, max_size=30))
def test_epochs_and_the_high_watermark_never_go_back_and_one_vote_is_given_per_epoch(happens: list[Event]) -> None:
    machine = node(1, 2, 3)
    feed(machine, Started(3, 1))
    epoch, committed = machine.epoch, machine.high_watermark
    votes: dict[int, int] = {}
    for event in happens:
        if isinstance(event, EpochSeen) and event.epoch == machine.epoch and machine.leads:
            # Two leaders in one epoch is what the other voters' votes rule out.
            continue
        for effect in machine.step(event, 0):
            if isinstance(effect, Persist) and effect.state.voted_id != -1:
                assert votes.setdefault(effect.state.epoch, effect.state.voted_id) == effect.state.voted_id
        assert machine.epoch >= epoch
        assert machine.high_watermark >= committed
        epoch, committed = machine.epoch, machine.high_watermark
