"""Single quorum nodes in the states that tests begin with, and what is said to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.uuid import ZERO_UUID, Uuid
from millstream.quorum.election_state import ElectionState
from millstream.quorum.events import (
    Answer,
    FetchRequested,
    Started,
    VoteAnswered,
    VoteRequested,
    Woken,
)
from millstream.quorum.node import QuorumNode
from millstream.quorum.positions import LogPosition
from millstream.quorum.roles import Candidate, ReplicaKey
from millstream.quorum.voters import DYNAMIC, STATIC, Voter, VoterSet
from tests.quorum.member import ListLog, Record

if TYPE_CHECKING:
    from millstream.quorum.events import Effect, Event

HERE = Uuid(b"h" * 16)
ELSEWHERE = Uuid(b"e" * 16)
TWO, THREE = ReplicaKey(2, ZERO_UUID), ReplicaKey(3, ZERO_UUID)
NEVER = 1 << 40


def log_of(*epochs: int) -> ListLog:
    """A log with one record for each of these epochs."""
    return ListLog(records=[Record(epoch, number) for number, epoch in enumerate(epochs)])


def node(
    *voter_ids: int, state: ElectionState | None = None, directory_id: Uuid = ZERO_UUID, log: ListLog | None = None
) -> QuorumNode:
    return QuorumNode(
        node_id=1,
        directory_id=HERE,
        voters=VoterSet(tuple(Voter(voter_id, directory_id) for voter_id in voter_ids)),
        kraft_version=STATIC if directory_id == ZERO_UUID else DYNAMIC,
        state=state or ElectionState(),
        log=log or ListLog(),
        jitter_ms=lambda bound: bound - 1,
    )


def feed(machine: QuorumNode, *events: Event) -> list[Effect]:
    """The effects of the last event. Time stands where every deadline has passed."""
    effects: list[Effect] = []
    for event in events:
        effects = machine.step(event, NEVER if isinstance(event, Woken) else 0)
    return effects


def candidate_of_three(*epochs: int) -> QuorumNode:
    machine = node(1, 2, 3, log=log_of(*epochs))
    feed(machine, Started(), Woken())
    feed(machine, VoteAnswered(2, machine.epoch, granted=True, pre_vote=True))
    assert isinstance(machine.role, Candidate)
    return machine


def asked(machine: QuorumNode, question: VoteRequested) -> Answer:
    (answer,) = [effect for effect in feed(machine, question) if isinstance(effect, Answer)]
    return answer


def leader_of_three(*epochs: int) -> QuorumNode:
    machine = candidate_of_three(*epochs)
    feed(machine, VoteAnswered(2, machine.epoch, granted=True))
    assert machine.leads
    return machine


def fetched(machine: QuorumNode, replica: ReplicaKey, offset: int, epoch: int) -> list[Effect]:
    return feed(machine, FetchRequested(replica, machine.epoch, LogPosition(offset, epoch)))


def append(machine: QuorumNode, count: int) -> None:
    log = machine._log
    assert isinstance(log, ListLog)
    log.records += [Record(machine.epoch, 0)] * count
