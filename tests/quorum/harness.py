"""Many quorum nodes, a random network between them, and disks that lose what was not synced: all of it in plain lists.

    quorum = Harness(seed=7, voters=3)
    quorum.run(ticks=500)      # elections, appends, lost and late messages, crashes
    quorum.heal()              # everything comes back
    quorum.settle()            # until all agree

After every step the invariants are checked: one leader at most in an epoch, nothing committed is ever lost or changed,
high watermarks and epochs only grow, and what a leader commits is on the disks of a majority.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from millstream.protocol.error_codes import ErrorCode
from millstream.protocol.uuid import ZERO_UUID
from millstream.quorum.events import Answer, AnswerFetch, FetchRequested, Stopping, Woken
from millstream.quorum.voters import Voter, VoterSet
from tests.quorum.member import Member, Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.protocol.uuid import Uuid
    from millstream.quorum.events import Event
    from millstream.quorum.positions import LogPosition

FETCH_EVERY_MS = 100


class Harness:
    """See the module's docstring."""

    def __init__(
        self, seed: int, voters: int = 3, observers: int = 0, *, faults: bool = True, dynamic: bool = False
    ) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.fetches = 0
        self.faults = faults
        self.dynamic = dynamic
        self.reconfigurations = 0
        self.first_voters = VoterSet(tuple(Voter(voter_id) for voter_id in range(1, voters + 1)))
        self.committed: list[Record] = []
        ids = range(1, voters + observers + 1)
        self.members = {each: Member(self, each, votes=dynamic or each <= voters) for each in ids}
        self.cut: set[tuple[int, int]] = set()
        self.enclosed: dict[int, tuple[list[Record], int]] = {}
        self.leaders: dict[int, int] = {}
        self._values = 0
        self._events: list[tuple[int, int, Member, int, Callable[[], None]]] = []
        self._sequence = 0
        for member in self.members.values():
            member.start()

    # The network

    def send(
        self,
        sender: Member,
        to: int,
        question: Event,
        answered: Callable[..., object],
        enclose: int = 0,
        directory_id: Uuid = ZERO_UUID,
    ) -> None:
        """`directory_id`: who is asked for something as a voter does not answer for one that had its number before."""
        receiver = self.members[to]

        def arrives() -> None:
            if directory_id in (ZERO_UUID, receiver.directory_id):
                answer = receiver.step(question)
            else:
                answer = Answer(ErrorCode.INVALID_VOTER_KEY)
            if enclose and answer == AnswerFetch():
                assert isinstance(question, FetchRequested)
                found = receiver.log.read(question.end.offset)
                self.enclosed[enclose] = (found, receiver.node.high_watermark)
            elif enclose:
                self.enclosed[enclose] = ([], -1)
            epoch, leader_id = receiver.node.epoch, receiver.node.leader_id
            if self._gets_through(to, sender.id):
                self.later(self._delay_ms(), sender, lambda: answered(answer, epoch, leader_id))

        for _ in range(2 if self.faults and not enclose and self.random.random() < 0.05 else 1):
            if self._gets_through(sender.id, to):
                self.later(self._delay_ms(), receiver, arrives)

    def _gets_through(self, sender: int, receiver: int) -> bool:
        return (sender, receiver) not in self.cut and not (self.faults and self.random.random() < 0.05)

    def _delay_ms(self) -> int:
        return self.random.randrange(1, 2000 if self.faults and self.random.random() < 0.05 else 20)

    def later(self, delay_ms: int, member: Member, call: Callable[[], None]) -> None:
        """A restart of the member forgets it."""
        self._sequence += 1
        self._events.append((self.now_ms + delay_ms, self._sequence, member, member.generation, call))

    # Time

    def advance(self, duration_ms: int) -> None:
        """Let this much time pass, with everything that falls due in it."""
        until = self.now_ms + duration_ms
        while True:
            timers = [
                (each.wake_at_ms, each.id) for each in self.members.values() if each.up and each.wake_at_ms is not None
            ]
            next_timer = min(timers, default=None)
            next_event = min(self._events, key=lambda event: event[:2], default=None)
            due = [at for at in (next_timer and next_timer[0], next_event and next_event[0]) if at is not None]
            if not due or min(due) > until:
                break
            self.now_ms = max(self.now_ms, min(due))
            if next_event is not None and next_event[0] == min(due):
                self._events.remove(next_event)
                _, _, member, generation, call = next_event
                if member.up and member.generation == generation:
                    call()
            elif next_timer is not None:
                member = self.members[next_timer[1]]
                member.wake_at_ms = None
                member.step(Woken())
            self.check()
        self.now_ms = until

    def tick(self) -> None:
        """A tenth of a second of a living quorum: disks sync, followers fetch, the leader appends."""
        for member in self.members.values():
            if member.up:
                if not self.faults or self.random.random() < 0.8:
                    member.flush()
                member.fetch()
                if member.node.leads and self.random.random() < 0.5:
                    member.log.records.append(self.new_record(member.node.epoch))
                if member.node.leads and self.dynamic and self.faults and self.random.random() < 0.1:
                    member.propose_voters()
        self.advance(FETCH_EVERY_MS)
        self.check()

    def run(self, ticks: int) -> None:
        """Ticks with faults between them."""
        for _ in range(ticks):
            self._make_trouble()
            self.tick()

    def _make_trouble(self) -> None:
        dice = self.random.random()
        member = self.random.choice(list(self.members.values()))
        if dice < 0.04 and member.up:
            (self.leader or member if dice < 0.02 else member).crash()
        elif dice < 0.12 and not member.up:
            member.start()
        elif dice < 0.15:
            other = self.random.choice(list(self.members))
            self.cut.add((member.id, other))
            if self.random.random() < 0.5:
                self.cut.add((other, member.id))
        elif dice < 0.19:
            self.cut.clear()
        elif dice < 0.21 and member.up and member.node.high_watermark > member.log.start_offset:
            member.log.compact(self.random.randrange(member.log.start_offset, member.node.high_watermark) + 1)
        elif dice < 0.22 and member.up:
            member.step(Stopping())

    def heal(self) -> None:
        self.cut.clear()
        self.faults = False
        for member in self.members.values():
            if not member.up:
                member.start()

    def settle(self, ticks: int = 200) -> None:
        """Until one leads, all follow, and all know everything to be committed."""
        for _ in range(ticks):
            self.tick()
            if self.leader is not None and all(
                each.node.high_watermark == self.leader.log.end.offset for each in self.members.values()
            ):
                return
        raise AssertionError(f"no agreement at {self.now_ms} ms: " + "; ".join(map(describe, self.members.values())))

    @property
    def leader(self) -> Member | None:
        leading = [member for member in self.members.values() if member.up and member.node.leads]
        return max(leading, key=lambda member: member.node.epoch, default=None)

    # What is checked

    def voters_at(self, offset: int) -> VoterSet:
        """Who voted by what is committed before `offset`."""
        named = (record.voters for record in reversed(self.committed[:offset]) if record.voters is not None)
        return next(named, self.first_voters)

    def new_record(self, epoch: int) -> Record:
        self._values += 1
        return Record(epoch, self._values)

    def note_leader(self, epoch: int, node_id: int) -> None:
        assert self.leaders.setdefault(epoch, node_id) == node_id, f"two leaders of epoch {epoch}"

    def note_committed(self, member: Member, high_watermark: int) -> None:
        log = member.log
        assert high_watermark <= log.end.offset
        first = max(log.start_offset, 0)
        known = self.committed[first:high_watermark]
        there = log.records[: high_watermark - first]
        assert there[: len(known)] == known, f"node {member.id} commits other records than were committed before"
        if high_watermark > len(self.committed):
            assert first <= len(self.committed)
            self.committed += there[len(known) :]
            voters = member.node.voters
            holders = [voter for voter in voters if self._holds(self.members[voter.id], high_watermark)]
            assert len(holders) > len(voters) // 2, f"{high_watermark} is committed without a majority"

    def _holds(self, member: Member, offset: int) -> bool:
        log = member.log
        if log.flushed < offset:
            return False
        first = log.start_offset
        return offset <= first or log.records[: offset - first] == self.committed[first:offset]

    def check_snapshot(self, snapshot: LogPosition) -> None:
        assert snapshot.offset <= len(self.committed)
        assert self.committed[snapshot.offset - 1].epoch == snapshot.epoch

    def check(self) -> None:
        for member in self.members.values():
            if member.up:
                assert member.durable.epoch <= member.node.epoch or member.node.epoch == member.durable.epoch
                self._check_prefix(member)

    def _check_prefix(self, member: Member) -> None:
        first, upto = member.log.start_offset, member.node.high_watermark
        assert member.log.records[: max(0, upto - first)] == self.committed[first:upto] or upto <= first


def describe(member: Member) -> str:
    node = member.node
    return (
        f"{member.id} {type(node.role).__name__} epoch {node.epoch} leader {node.leader_id} "
        f"end {member.log.end} flushed {member.log.flushed} committed {node.high_watermark}"
    )
