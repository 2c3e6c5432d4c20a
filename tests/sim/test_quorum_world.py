"""The metadata quorum's pure machine under hundreds of seeds, and bugs planted into it that a few seeds find."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.quorum import leading, voting
from millstream.quorum import node as machine
from millstream.quorum.election_state import NOBODY, ElectionState
from millstream.quorum.events import Commit, FetchAnswered, Persist
from millstream.quorum.node import QuorumNode
from millstream.quorum.positions import Agrees, LogPosition
from millstream.quorum.roles import Ballot, Candidate, Follower, Leader, Unattached
from millstream.quorum.voters import VoterSet
from tests.sim import pure_voter, quorum_world
from tests.sim.planting import Plant, must_be_found, replaces
from tests.sim.seeds import fresh_seeds, given_seed, how_to_replay, kept_seeds, name_of

if TYPE_CHECKING:
    from tests.sim.conftest import Tried

CLEAN_SEEDS = 40


@pytest.mark.parametrize("voters", [3, 5])
def test_no_seed_breaks_the_quorum(voters: int, tried: Tried) -> None:
    elections = 0
    fresh = fresh_seeds(CLEAN_SEEDS)
    for seed in [*kept_seeds("quorum", voters=voters), *fresh]:
        try:
            world = quorum_world.run(seed, voters=voters)
        except BaseException as error:
            error.add_note(how_to_replay("quorum", "tests/sim/test_quorum_world.py -k no_seed", seed, voters=voters))
            raise
        elections += len(world.leaders)
    tried("the quorum's machine alone", len(fresh), name_of(fresh))
    if given_seed() is None:
        assert elections > 2 * len(fresh), "the dice are too kind: hardly anybody is elected twice"


def _without(kind: type, original: Any) -> Any:
    """The same function, with one kind of effect left out."""

    def wrong(self: QuorumNode, *arguments: Any, **more: Any) -> list[Any]:
        return [effect for effect in original(self, *arguments, **more) if not isinstance(effect, kind)]

    return wrong


def _resumes_its_epoch(self: QuorumNode, now_ms: int) -> list[Any]:
    if self.state.leader_id == self.node_id:
        self.role = Leader(epoch_start=0, since_ms=now_ms)
        return [self._wake_at(now_ms + self.timeouts.announce_ms)]
    return RIGHT_START(self, now_ms)


def _counts_what_is_not_flushed(role: Leader, voters: VoterSet) -> int:
    best = max((progress.end_offset for progress in role.voters.values()), default=0)
    return max(best, RIGHT_HELD(role, voters))


def _counts_diverging_fetches(self: QuorumNode, request: Any, now_ms: int) -> list[Any]:
    if isinstance(self.role, Leader) and request.epoch == self.epoch:
        leading.note_fetch(self.role, request.replica, self.voters, self._log, request.end.offset, now_ms)
    return RIGHT_ANSWER_FETCH(self, request, now_ms)


def _believes_the_leaders_mark(self: QuorumNode, answer: FetchAnswered, now_ms: int) -> list[Any]:
    effects = RIGHT_TAKE(self, answer, now_ms)
    if isinstance(self.role, Follower) and answer.high_watermark > self.high_watermark:
        self.high_watermark = answer.high_watermark
        return [Commit(answer.high_watermark), *effects]
    return effects


def _votes_for_everyone(role: Any, state: ElectionState, candidate: Any, *, log_is_new_enough: bool) -> bool:
    return log_is_new_enough and isinstance(role, Unattached | Candidate)


def _votes_twice(role: Any, state: ElectionState, candidate: Any, *, log_is_new_enough: bool) -> bool:
    return RIGHT_MAY_VOTE(role, ElectionState(epoch=state.epoch), candidate, log_is_new_enough=log_is_new_enough)


def _cuts_to_its_mark(self: QuorumNode, answer: FetchAnswered, now_ms: int) -> list[Any]:
    effects = RIGHT_TAKE(self, answer, now_ms)
    if answer.diverging is not None:
        return [replace(e, offset=self.high_watermark) if hasattr(e, "offset") else e for e in effects]
    return effects


def _forgets_the_epoch(content: bytes) -> ElectionState:
    return ElectionState()


def _forgets_its_vote(content: bytes) -> ElectionState:
    return replace(RIGHT_DECODE(content), voted_id=NOBODY)


RIGHT_START = QuorumNode._start
RIGHT_HELD = leading.held_by_majority
RIGHT_ANSWER_FETCH = QuorumNode._answer_fetch
RIGHT_TAKE = QuorumNode._take_fetched
RIGHT_ANSWER_VOTE = QuorumNode._answer_vote
RIGHT_SEE = QuorumNode._see
RIGHT_DECODE = pure_voter.decode_election_state
RIGHT_MAY_VOTE = voting.may_vote

PLANTS = [
    replaces(
        "a vote is not persisted",
        QuorumNode,
        "_answer_vote",
        _without(Persist, RIGHT_ANSWER_VOTE),
        rule="epochs only grow",
        seeds=30,
    ),
    replaces(
        "an epoch that was heard of is not persisted",
        QuorumNode,
        "_see",
        _without(Persist, RIGHT_SEE),
        rule="epochs only grow",
        seeds=200,
    ),
    replaces(
        "a restart forgets the epoch",
        pure_voter,
        "decode_election_state",
        _forgets_the_epoch,
        rule="epochs only grow",
        seeds=20,
    ),
    replaces(
        "a restart forgets the vote",
        pure_voter,
        "decode_election_state",
        _forgets_its_vote,
        rule="one vote per epoch",
        seeds=60,
    ),
    replaces(
        "a voter votes as often as it is asked", machine, "may_vote", _votes_twice, rule="one vote per epoch", seeds=20
    ),
    replaces(
        "a candidate votes for others, too",
        machine,
        "may_vote",
        _votes_for_everyone,
        rule="one vote per epoch",
        seeds=20,
    ),
    replaces(
        "votes go to logs that are behind",
        LogPosition,
        "is_as_new_as",
        lambda *_: True,
        rule="a leader holds all that was committed",
        seeds=40,
    ),
    replaces(
        "the longer log wins, whatever its epoch",
        LogPosition,
        "is_as_new_as",
        lambda self, other: self.offset >= other.offset,
        rule="a leader holds all that was committed",
        seeds=40,
    ),
    replaces(
        "half of the voters are a majority",
        VoterSet,
        "majority",
        property(lambda it: len(it) // 2),
        rule="a majority holds what is committed",
        seeds=5,
    ),
    replaces(
        "two of the voters are enough, whoever they are",
        Ballot,
        "is_won",
        lambda self, voters: len(self.granted) >= voters.majority,
        rule="an epoch has one leader",
        seeds=20,
    ),
    replaces(
        "a restarted leader leads its epoch on",
        QuorumNode,
        "_start",
        _resumes_its_epoch,
        rule="a majority holds what is committed",
        seeds=120,
    ),
    replaces(
        "the longest log counts as the majority's",
        leading,
        "held_by_majority",
        _counts_what_is_not_flushed,
        rule="a majority holds what is committed",
        seeds=5,
    ),
    replaces(
        "logs are never found to part",
        machine,
        "compare",
        lambda *_: Agrees(),
        rule="what was committed stays",
        seeds=20,
    ),
    replaces(
        "a fetch counts before it is compared",
        QuorumNode,
        "_answer_fetch",
        _counts_diverging_fetches,
        rule="a majority holds what is committed",
        seeds=60,
    ),
    replaces(
        "a follower takes its leader's mark for its own",
        QuorumNode,
        "_take_fetched",
        _believes_the_leaders_mark,
        rule="nobody commits what it has not",
        seeds=5,
    ),
    replaces(
        "a log is cut at its own high watermark",
        QuorumNode,
        "_take_fetched",
        _cuts_to_its_mark,
        rule="a leader holds all that was committed",
        seeds=40,
    ),
    replaces(
        "an isolated leader leads on",
        leading,
        "heard_majority_at_ms",
        lambda role, voters, node_id, now_ms: now_ms,
        rule="an isolated leader resigns",
        seeds=20,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.plant(monkeypatch)
    must_be_found(plant, quorum_world.run)
