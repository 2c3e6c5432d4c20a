"""The pure rules of leaders and followers under hundreds of seeds, and bugs planted into them that a few seeds find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.replication import follower as follows
from millstream.replication.follower import AdvanceHighWatermark, PartitionFollower
from millstream.replication.leader import PartitionLeader
from tests.sim import replication_world
from tests.sim.planting import Plant, must_be_found, replaces
from tests.sim.pure_replica import Replica
from tests.sim.seeds import fresh_seeds, given_seed, how_to_replay, kept_seeds, name_of

if TYPE_CHECKING:
    from tests.sim.conftest import Tried

CLEAN_SEEDS = 100


@pytest.mark.parametrize(("replicas", "min_isr"), [(3, 2), (3, 1), (5, 3)])
def test_no_seed_breaks_replication(replicas: int, min_isr: int, tried: Tried) -> None:
    elections = 0
    numbers = {"replicas": replicas, "min_isr": min_isr}
    fresh = fresh_seeds(CLEAN_SEEDS)
    for seed in [*kept_seeds("replication", **numbers), *fresh]:
        try:
            world = replication_world.run(seed, replicas=replicas, min_isr=min_isr)
        except BaseException as error:
            test = "tests/sim/test_replication_world.py -k no_seed"
            error.add_note(how_to_replay("replication", test, seed, **numbers))
            raise
        elections += len(world.leaders)
    tried("replication's machine alone", len(fresh), name_of(fresh))
    if given_seed() is None:
        assert elections > 3 * len(fresh), "the dice are too kind: hardly anybody is elected"


RIGHT_AFTER_FETCH = PartitionFollower.after_fetch
RIGHT_SETTLE = PartitionLeader._settle
RIGHT_INIT = PartitionLeader.__init__
RIGHT_TRUNCATION = follows.truncation_offset
RIGHT_LEARN = Replica.learn


def _takes_any_answer(self: PartitionFollower, asked: Any, answer: Any, log: Any) -> tuple[Any, ...]:
    return RIGHT_AFTER_FETCH(self, asked._replace(leader_epoch=self.epoch, offset=log.end_offset), answer, log)


def _takes_answers_of_old_epochs(self: PartitionFollower, asked: Any, answer: Any, log: Any) -> tuple[Any, ...]:
    return RIGHT_AFTER_FETCH(self, asked._replace(leader_epoch=self.epoch), answer, log)


def _raises_the_mark_before_cutting(self: PartitionFollower, asked: Any, answer: Any, log: Any) -> tuple[Any, ...]:
    effects = RIGHT_AFTER_FETCH(self, asked, answer, log)
    if answer.error_code == 0 and answer.diverging_epoch.epoch != -1:
        return (AdvanceHighWatermark(answer.high_watermark), *effects)
    return effects


RIGHT_POSITION = PartitionFollower.position


def _never_says_its_epoch(self: PartitionFollower, log: Any) -> Any:
    return RIGHT_POSITION(self, log)._replace(last_fetched_epoch=-1)


def _cuts_to_its_mark_at_once(self: Any, state: Any) -> None:
    """Before KIP-101: whoever becomes a follower cuts to its own high watermark, and asks for no epoch."""
    was = self.follower
    RIGHT_LEARN(self, state)
    if self.follower is not None and self.follower is not was:
        self.log.cut(self.log.high_watermark)


def _acknowledges_at_once(self: PartitionLeader) -> bool:
    moved = self.own_end > self.high_watermark
    self.high_watermark = max(self.high_watermark, self.own_end)
    return moved


def _goes_by_majority(self: PartitionLeader) -> bool:
    ends = sorted([self.own_end, *(f.end_offset for f in self.followers.values())], reverse=True)
    reached = ends[len(self.replicas) // 2]
    if reached <= self.high_watermark:
        return False
    self.high_watermark = reached
    return True


def _forgets_who_was_proposed(self: PartitionLeader) -> bool:
    proposal, self.proposal = self.proposal, None
    moved = RIGHT_SETTLE(self)
    self.proposal = proposal
    return moved


def _drops_members_before_the_controller_agrees(self: PartitionLeader) -> bool:
    if self.proposal is None:
        return RIGHT_SETTLE(self)
    isr, self.isr = self.isr, self.proposal.members
    moved = RIGHT_SETTLE(self)
    self.isr = isr
    return moved


def _passes_over_min_isr(self: PartitionLeader) -> bool:
    moved = RIGHT_SETTLE(self)
    self._enough = True
    return self._advance() or moved


def _starts_at_its_end(self: PartitionLeader, **given: Any) -> None:
    RIGHT_INIT(self, **{**given, "high_watermark": given["own_end"]})


def _believes_followers_of_before(self: PartitionLeader, **given: Any) -> None:
    RIGHT_INIT(self, **given)
    for follower in self.followers.values():
        follower.end_offset = given["own_end"]


def _cuts_only_within_its_epoch(leader_epoch: int, leader_end: int, log: Any) -> int:
    """Before KIP-279: an epoch that is not known here is taken for the next one."""
    return min(leader_end, log.end_offset)


PLANTS = [
    replaces(
        "rule 1: logs are not matched by epoch",
        PartitionFollower,
        "position",
        _never_says_its_epoch,
        rule="what was committed stays",
        seeds=20,
    ),
    replaces(
        "KIP-101: a follower cuts to its own mark",
        Replica,
        "learn",
        _cuts_to_its_mark_at_once,
        rule="a leader holds all that was committed",
        seeds=60,
    ),
    replaces(
        "a follower cuts to its own mark where logs part",
        follows,
        "truncation_offset",
        lambda *a: a[2].high_watermark,
        rule="a leader holds all that was committed",
        seeds=250,
    ),
    replaces(
        "KIP-279: unknown epochs are passed over",
        follows,
        "truncation_offset",
        _cuts_only_within_its_epoch,
        rule="replicas are alike at rest",
        seeds=60,
    ),
    replaces(
        "rule 2: answers to any question are taken",
        PartitionFollower,
        "after_fetch",
        _takes_any_answer,
        rule="what was committed stays",
        seeds=60,
    ),
    replaces(
        "rule 2: answers of old epochs are taken",
        PartitionFollower,
        "after_fetch",
        _takes_answers_of_old_epochs,
        rule="a leader holds all that was committed",
        seeds=700,
    ),
    replaces(
        "KAFKA-14704: the mark rises before the cut",
        PartitionFollower,
        "after_fetch",
        _raises_the_mark_before_cutting,
        rule="what was committed stays",
        seeds=40,
    ),
    replaces(
        "rule 3: fetches of any epoch count",
        PartitionLeader,
        "check_epoch",
        lambda *_: None,
        rule="what was committed stays",
        seeds=300,
    ),
    replaces(
        "rule 3: what was said to the leader before counts",
        PartitionLeader,
        "__init__",
        _believes_followers_of_before,
        rule="a leader holds all that was committed",
        seeds=20,
    ),
    replaces(
        "rule 4: who is behind the epoch's start may join",
        PartitionLeader,
        "may_join",
        lambda self, follower: (
            self.proposal is None and follower.id not in self.isr and follower.end_offset >= self.high_watermark
        ),
        rule="a leader holds all that was committed",
        seeds=100,
    ),
    replaces(
        "who is behind the mark may join",
        PartitionLeader,
        "may_join",
        lambda self, follower: self.proposal is None and follower.id not in self.isr,
        rule="a leader holds all that was committed",
        seeds=60,
    ),
    replaces(
        "acknowledged before the high watermark",
        PartitionLeader,
        "_advance",
        _acknowledges_at_once,
        rule="min.insync.replicas hold what is acknowledged",
        seeds=5,
    ),
    replaces(
        "a majority is enough",
        PartitionLeader,
        "_advance",
        _goes_by_majority,
        rule="a leader holds all that was committed",
        seeds=20,
    ),
    replaces(
        "who is about to join does not count",
        PartitionLeader,
        "_settle",
        _forgets_who_was_proposed,
        rule="a leader holds all that was committed",
        seeds=700,
    ),
    replaces(
        "who is about to leave does not count",
        PartitionLeader,
        "_settle",
        _drops_members_before_the_controller_agrees,
        rule="a leader holds all that was committed",
        seeds=300,
    ),
    replaces(
        "the mark rises below min.insync.replicas",
        PartitionLeader,
        "_settle",
        _passes_over_min_isr,
        rule="min.insync.replicas hold what is acknowledged",
        seeds=40,
    ),
    replaces(
        "a new leader commits all that it has",
        PartitionLeader,
        "__init__",
        _starts_at_its_end,
        rule="a leader holds all that was committed",
        seeds=60,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.plant(monkeypatch)
    must_be_found(plant, replication_world.run)
