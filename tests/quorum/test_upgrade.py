"""kraft.version 0 to 1: voters that a setting named become voters that the log names, and nobody loses anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.protocol.error_codes import ErrorCode
from millstream.protocol.uuid import ZERO_UUID
from millstream.quorum.events import (
    Answer,
    FetchRequested,
    Flushed,
    Started,
    VoteAnswered,
    VoterIntroduced,
    VotersChanged,
    Woken,
)
from millstream.quorum.positions import LogPosition
from millstream.quorum.roles import Leader, ReplicaKey
from millstream.quorum.upgrade import UpgradeRefused
from millstream.quorum.voters import DYNAMIC, STATIC, Voter, VoterEndpoint, VoterSet
from tests.quorum.machines import HERE, NEVER, feed, node
from tests.quorum.member import Record
from tests.quorum.upgrading import UpgradingHarness, directory

if TYPE_CHECKING:
    from millstream.quorum.node import QuorumNode

SEEDS = 40
ENDPOINTS = (VoterEndpoint("CONTROLLER", "localhost", 9093),)
TWO, THREE = Voter(2, directory(2)), Voter(3, directory(3))


def leader(*, certain: bool = True) -> QuorumNode:
    """Node 1 leads epoch 1 of three fixed voters, and (if certain) has committed the epoch's first record."""
    machine = node(1, 2, 3)
    feed(machine, Started(), Woken(), VoteAnswered(2, 0, granted=True, pre_vote=True))
    feed(machine, VoteAnswered(2, 1, granted=True))
    assert isinstance(machine.role, Leader)
    machine._log.records.append(Record(1, 1))  # type: ignore[attr-defined]
    if certain:
        feed(machine, Flushed(1), fetch_of(TWO))
        assert machine.high_watermark == 1
    return machine


def fetch_of(voter: Voter) -> FetchRequested:
    return FetchRequested(ReplicaKey(voter.id, voter.directory_id), 1, LogPosition(1, 1))


def introduce(machine: QuorumNode, voter: Voter, epoch: int = 1) -> ErrorCode:
    (answer,) = machine.step(VoterIntroduced(voter, epoch), NEVER)
    assert isinstance(answer, Answer)
    return answer.error


def test_all_voters_stand_in_the_log_once_all_have_introduced_themselves() -> None:
    machine = leader()
    assert introduce(machine, TWO) is ErrorCode.NONE
    assert introduce(machine, THREE) is ErrorCode.NONE
    assert machine.upgraded_voters(ENDPOINTS) == VoterSet((Voter(1, HERE, ENDPOINTS), TWO, THREE))


def test_a_voter_that_was_not_heard_of_is_not_left_behind() -> None:
    machine = leader()
    introduce(machine, TWO)
    with pytest.raises(UpgradeRefused, match="heard from 3"):
        machine.upgraded_voters(ENDPOINTS)


@pytest.mark.parametrize("voter", [Voter(3, directory(3), kraft_version_max=STATIC), Voter(3, ZERO_UUID)])
def test_a_voter_that_does_not_know_the_new_level_keeps_all_from_it(voter: Voter) -> None:
    machine = leader()
    introduce(machine, TWO)
    introduce(machine, voter)
    with pytest.raises(UpgradeRefused, match="not all of the voters support it"):
        machine.upgraded_voters(ENDPOINTS)


def test_a_voter_with_another_disk_has_to_introduce_itself_again() -> None:
    machine = leader()
    introduce(machine, TWO)
    introduce(machine, THREE)
    feed(machine, fetch_of(Voter(3, directory(3, disk=2))))
    with pytest.raises(UpgradeRefused, match="heard from 3"):
        machine.upgraded_voters(ENDPOINTS)


def test_the_leader_of_the_next_epoch_has_to_hear_it_again() -> None:
    machine = leader()
    introduce(machine, TWO)
    introduce(machine, THREE)
    machine.role = Leader(epoch_start=1)
    with pytest.raises(UpgradeRefused):
        machine.upgraded_voters(ENDPOINTS)


@pytest.mark.parametrize(
    ("voter", "epoch", "certain", "code"),
    [
        (Voter(4, directory(4)), 1, True, ErrorCode.VOTER_NOT_FOUND),
        (TWO, 0, True, ErrorCode.FENCED_LEADER_EPOCH),
        (TWO, 2, True, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (TWO, 1, False, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_an_introduction_is_refused(voter: Voter, epoch: int, certain: bool, code: ErrorCode) -> None:
    assert introduce(leader(certain=certain), voter, epoch) is code


def test_only_the_leader_is_told() -> None:
    machine = node(1, 2, 3)
    feed(machine, Started())
    assert introduce(machine, TWO, epoch=0) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_quorum_is_upgraded_once() -> None:
    machine = leader()
    introduce(machine, TWO)
    introduce(machine, THREE)
    voters = machine.upgraded_voters(ENDPOINTS)
    feed(machine, VotersChanged(voters, DYNAMIC, 1, machine.voters))
    with pytest.raises(UpgradeRefused):
        machine.upgraded_voters(ENDPOINTS)


@pytest.mark.parametrize("voters", [1, 2, 3, 5])
def test_a_quorum_in_peace_is_upgraded(voters: int) -> None:
    quorum = UpgradingHarness(seed=voters, voters=voters, faults=False)
    quorum.settle()
    while not quorum.is_upgraded:
        quorum.tick()
        assert quorum.now_ms < 30_000
    quorum.settle()
    wanted = {number: directory(number) for number in range(1, voters + 1)}
    for member in quorum.members.values():
        assert {voter.id: voter.directory_id for voter in member.node.voters} == wanted
        assert member.node.kraft_version == DYNAMIC


def test_an_upgrade_in_the_middle_of_anything_loses_nothing() -> None:
    upgraded = disks_lost = 0
    for seed in range(SEEDS):
        quorum = UpgradingHarness(seed)
        quorum.run(ticks=200)
        quorum.heal()
        before = list(quorum.committed)
        quorum.settle()
        assert quorum.committed[: len(before)] == before, f"seed {seed}"
        assert len({member.node.kraft_version for member in quorum.members.values()}) == 1, f"seed {seed}"
        upgraded += quorum.is_upgraded
        disks_lost += quorum.disks_lost
    assert upgraded > SEEDS // 2
    assert disks_lost > SEEDS // 4
