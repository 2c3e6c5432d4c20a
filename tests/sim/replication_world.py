"""One partition's leader and followers without disks, sockets or loops: the pure rules, dice, and perfect hindsight.

A simple controller (one mind, always right) elects, fences and agrees to changes of the ISR as Kafka's does; what it
decides reaches each replica in order but late. Fetches and their answers are late, doubled and lost. Replicas crash:
a killed process keeps its log, a machine without power loses the end of it, once at a time and only while everybody
is in sync. The ledger of what was committed is compared with each log after every step.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.fetch import EpochEndOffset, PartitionData
from millstream.replication import follower as follows
from millstream.replication.leader import IsrProposal, PartitionLeader
from millstream.testing.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.replication.follower import Position

LAG_MAX_MS = 400


def _answer(*, error_code: int = 0, high_watermark: int, **more: Any) -> PartitionData:
    return PartitionData(
        **{
            "partition_index": 0,
            "error_code": error_code,
            "high_watermark": high_watermark,
            "aborted_transactions": None,
            "records": b"",
            **more,
        }
    )


class PureLog:
    """(epoch, value) by offset, and the epochs that are known to have begun."""

    start_offset = 0

    def __init__(self) -> None:
        self.entries: list[tuple[int, str]] = []
        self.epochs: list[tuple[int, int]] = []
        self.high_watermark = 0
        self.durable = 0

    @property
    def end_offset(self) -> int:
        return len(self.entries)

    @property
    def latest_epoch(self) -> int:
        return self.epochs[-1][0] if self.epochs else -1

    def begin_epoch(self, epoch: int, offset: int) -> None:
        if epoch > self.latest_epoch:
            # An epoch that began where this one does wrote nothing here.
            self.epochs = [known for known in self.epochs if known[1] < offset]
            self.epochs.append((epoch, offset))

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        if epoch == self.latest_epoch:
            return epoch, self.end_offset
        known = [each for each in self.epochs if each[0] <= epoch]
        following = [each for each in self.epochs if each[0] > epoch]
        if not known:
            return (-1, -1) if not following else (epoch, following[0][1])
        return known[-1][0], following[0][1] if following else self.end_offset

    def append(self, entries: list[tuple[int, str]]) -> None:
        for epoch, value in entries:
            self.begin_epoch(epoch, len(self.entries))
            self.entries.append((epoch, value))

    def cut(self, offset: int) -> None:
        del self.entries[offset:]
        self.epochs = [known for known in self.epochs if known[1] < offset]
        self.durable = min(self.durable, offset)
        self.high_watermark = min(self.high_watermark, offset)


@dataclass(frozen=True, slots=True)
class State:
    """The partition as the controller sees it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


class Replica:
    """One broker's copy."""

    def __init__(self, world: ReplicationWorld, broker_id: int) -> None:
        self.world = world
        self.id = broker_id
        self.log = PureLog()
        self.up = True
        self.boots = 1
        self.broker_epoch = -1
        self.leader: PartitionLeader | None = None
        self.follower: follows.PartitionFollower | None = None
        self.waiting: deque[tuple[int, str]] = deque()
        self._asked = 0

    # --- roles

    def learn(self, state: State) -> None:
        """The metadata reach this broker."""
        leader = self.leader
        if state.leader == self.id:
            if leader is not None and leader.epoch == state.leader_epoch:
                self._moved(leader.committed(isr=state.isr, partition_epoch=state.partition_epoch))
                return
            if leader is None or leader.epoch < state.leader_epoch:
                self._lead(state)
        elif self.follower is None or self.follower.epoch < state.leader_epoch:
            self.leader = None
            self.waiting.clear()
            self.follower = follows.PartitionFollower(state.leader, state.leader_epoch) if state.leader >= 0 else None
            if self.follower is not None:
                self.fetch()

    def _lead(self, state: State) -> None:
        log = self.log
        self.follower = None
        self.waiting.clear()
        log.begin_epoch(state.leader_epoch, log.end_offset)
        self.leader = PartitionLeader(
            node_id=self.id,
            epoch=state.leader_epoch,
            replicas=self.world.ids,
            isr=state.isr,
            min_isr=self.world.min_isr,
            own_end=log.end_offset,
            high_watermark=log.high_watermark,
            partition_epoch=state.partition_epoch,
            epoch_start_offset=log.end_offset,
            now_ms=self.world.now_ms,
        )
        self.world.elected(self)
        self.leader.own_log_reached(log.end_offset)
        self._moved(True)

    def _moved(self, moved: bool) -> None:
        leader = self.leader
        if moved and leader is not None:
            self.log.high_watermark = leader.high_watermark
            while self.waiting and self.waiting[0][0] < leader.high_watermark:
                offset, value = self.waiting.popleft()
                self.world.acknowledged(self, offset, value)
        self.world.look(self)

    # --- leading

    def produce(self, value: str) -> None:
        leader = self.leader
        if leader is None:
            return
        try:
            leader.check_enough_in_sync()
        except BrokerError:
            return
        self.log.append([(leader.epoch, value)])
        self.waiting.append((self.log.end_offset - 1, value))
        self._moved(leader.own_log_reached(self.log.end_offset))

    def serve(self, source: int, position: Position, broker_epoch: int) -> PartitionData | None:
        """A follower's fetch arrives, as broker/reading.py answers it."""
        leader = self.leader
        try:
            if leader is None:
                return _answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=-1)
            leader.check_epoch(position.leader_epoch)
            follower = leader.follower(source, position.leader_epoch)
        except BrokerError as refusal:
            return _answer(error_code=refusal.code, high_watermark=-1)
        log = self.log
        if position.last_fetched_epoch >= 0:
            epoch, end = log.end_offset_for_epoch(position.last_fetched_epoch)
            if epoch < position.last_fetched_epoch or end < position.offset:
                return _answer(
                    high_watermark=log.high_watermark,
                    diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end),
                )
        if position.offset > log.end_offset:
            return _answer(error_code=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=-1)
        try:
            moved = leader.follower_fetched(
                follower,
                position.offset,
                start_offset=0,
                broker_epoch=broker_epoch,
                leader_end=log.end_offset,
                now_ms=self.world.now_ms,
            )
        except BrokerError as refusal:
            return _answer(error_code=refusal.code, high_watermark=-1)
        self._moved(moved)
        if source not in leader.isr:
            near = follower.is_caught_up(log.end_offset, self.world.now_ms, LAG_MAX_MS)
            self._moved(leader.waits_for(follower, waits=near))
            if leader.may_join(follower):
                self._propose((*leader.isr, source))
        records = log.entries[position.offset : position.offset + self.world.random.randint(1, 3)]
        return _answer(
            high_watermark=log.high_watermark,
            log_start_offset=0,
            records=records,  # entries stand for bytes
        )

    def drop_laggards(self) -> None:
        leader = self.leader
        if leader is None:
            return
        for follower in leader.followers.values():
            if follower.holds_back and not follower.is_caught_up(self.log.end_offset, self.world.now_ms, LAG_MAX_MS):
                self._moved(leader.waits_for(follower, waits=False))
        if leader.proposal is None:
            lagging = leader.lagging(self.log.end_offset, self.world.now_ms, LAG_MAX_MS)
            if lagging:
                self._propose(tuple(member for member in leader.isr if member not in lagging))

    def _propose(self, members: tuple[int, ...]) -> None:
        leader = self.leader
        if leader is None or leader.proposal is not None:
            return
        proposal = leader.propose(members, self.broker_epoch)
        self._ask(leader, proposal)

    def _ask(self, leader: PartitionLeader, proposal: IsrProposal) -> None:
        """Until the answer has come: what is proposed may have been carried out."""
        if self.up and self.leader is leader and leader.proposal is proposal:
            self.world.send(self.id, 0, lambda: self.world.alter(self, leader, proposal))
            self.later(300, lambda: self._ask(leader, proposal))

    def refused(self, leader: PartitionLeader, proposal: IsrProposal) -> None:
        """INVALID_UPDATE_VERSION or FENCED_LEADER_EPOCH: nothing can be concluded from that."""

    # --- following

    def later(self, delay_ms: int, call: Callable[[], None]) -> None:
        boot = self.boots
        self.world.at(delay_ms, lambda: call() if self.up and self.boots == boot else None)

    def fetch(self) -> None:
        following = self.follower
        if following is None:
            return
        position = following.position(self.log)
        boot, broker_epoch, target = self.boots, self.broker_epoch, self.world.replicas[following.leader_id]

        def arrives() -> None:
            if target.up:
                answer = target.serve(self.id, position, broker_epoch)
                self.world.send(target.id, self.id, lambda: self._answered(boot, position, answer))

        self._asked += 1
        number = self._asked
        self.world.send(self.id, target.id, arrives)
        self.later(100, lambda: self.fetch() if self._asked == number else None)

    def _answered(self, boot: int, position: Position, answer: PartitionData | None) -> None:
        following = self.follower
        if following is None or answer is None or not self.up or self.boots != boot:
            return
        effects = following.after_fetch(position, answer, self.log)
        for effect in effects:
            match effect:
                case follows.Append(records):
                    self.log.append(records)  # type: ignore[arg-type]
                case follows.AdvanceHighWatermark(offset):
                    self.log.high_watermark = max(self.log.high_watermark, min(offset, self.log.end_offset))
                case follows.Truncate(offset):
                    self.world.cut(self, offset)
                    self.log.cut(offset)
                case follows.StartAnew() | follows.AskForOffsets():
                    raise Violation("logs begin at 0 and end within their leader's", f"{self.id}: {effect}")
                case _:
                    pass
            self.world.look(self)
        if any(isinstance(effect, follows.Append | follows.Truncate) for effect in effects):
            self.fetch()


class ReplicationWorld:
    """Everything, driven by one seed."""

    def __init__(self, seed: int, *, replicas: int = 3, min_isr: int = 2) -> None:
        self.random = Random(f"replication {seed}")
        self.now_ms = 0
        self.min_isr = min_isr
        self.ids = tuple(range(1, replicas + 1))
        self.replicas = {broker_id: Replica(self, broker_id) for broker_id in self.ids}
        self.state = State(1, 0, self.ids, 0)
        self.unfenced: dict[int, int] = {}
        self.ledger: list[tuple[int, str]] = []
        self.acked: dict[int, str] = {}
        self.leaders: dict[int, int] = {}
        self.blocked: dict[tuple[int, int], None] = {}
        self.steps = 0
        self._at_peace = False
        self._values = count(1)
        self._broker_epochs = count(10)
        self._news: dict[int, deque[State]] = {broker_id: deque() for broker_id in self.ids}
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._marks: dict[tuple[int, int], int] = {}
        self._ends: dict[int, int] = {}

    # --- time and network

    def at(self, delay_ms: int, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now_ms + delay_ms, next(self._order), call))

    def send(self, source: int, target: int, call: Callable[[], None]) -> None:
        if self._at_peace:
            self.at(self.random.randrange(1, 10), call)
            return
        if self.random.random() < 0.03:
            return
        for _ in range(2 if self.random.random() < 0.05 else 1):
            delay_ms = self.random.randrange(1, 10) if self.random.random() < 0.93 else self.random.randrange(900)
            self.at(delay_ms, lambda: call() if (source, target) not in self.blocked else None)

    def run(self, *, virtual_ms: int = 8_000) -> None:
        for replica in self.replicas.values():
            replica.broker_epoch = self.unfenced[replica.id] = next(self._broker_epochs)
        self._publish(self.state)
        self.at(20, self._produce)
        self.at(self.random.randrange(500), self._break)
        self.at(LAG_MAX_MS, self._drop_laggards)
        self._until(virtual_ms)
        self._at_peace = True
        self.blocked.clear()
        for replica in self.replicas.values():
            self._boot(replica)
        before = len(self.acked)
        self._until(self.now_ms + 8_000)
        if len(self.acked) <= before:
            raise Violation("it comes to rest", f"nothing is acknowledged after everything was mended: {self.state}")
        for replica in self.replicas.values():
            if replica.log.entries[: len(self.ledger)] != self.ledger[: replica.log.end_offset]:
                raise Violation("replicas are alike at rest", f"{replica.id}")
            if self.state.isr and replica.id not in self.state.isr:
                raise Violation("every replica catches up", f"{replica.id} is not in sync at the end")

    def _until(self, end_ms: int) -> None:
        while self._due and self._due[0][0] <= end_ms:
            self.now_ms, _, call = heapq.heappop(self._due)
            self.steps += 1
            call()
        self.now_ms = end_ms

    # --- the controller

    def _publish(self, state: State) -> None:
        self.state = state
        for replica in self.replicas.values():
            self._tell(replica, state)

    def _tell(self, replica: Replica, state: State) -> None:
        if not replica.up:
            return
        self._news[replica.id].append(state)
        slow = self.random.random() < 0.15
        replica.later(self.random.randrange(1, 700 if slow else 20), lambda: self._learn(replica))

    def _learn(self, replica: Replica) -> None:
        news = self._news[replica.id]
        if news:
            replica.learn(news.popleft())

    def _elect(self, isr: tuple[int, ...], *, avoid: int = -1) -> None:
        """A leader out of those in sync; without one, the last of them stay members until they are back."""
        alive = [member for member in isr if member in self.unfenced]
        alive = [member for member in alive if member != avoid] or alive
        state = self.state
        if alive:
            isr = tuple(member for member in isr if member in self.unfenced)
            leader = state.leader if state.leader in alive else self.random.choice(alive)
        else:
            leader = -1
        if (leader, isr) == (state.leader, state.isr):
            return
        bump = leader != state.leader or len(isr) < len(state.isr)
        self._publish(State(leader, state.leader_epoch + bump, isr, state.partition_epoch + 1))

    def fence(self, broker_id: int) -> None:
        if self.unfenced.pop(broker_id, None) is not None:
            rest = tuple(member for member in self.state.isr if member != broker_id)
            self._elect(rest or self.state.isr)

    def register(self, replica: Replica) -> None:
        self.fence(replica.id)
        replica.broker_epoch = next(self._broker_epochs)
        self.unfenced[replica.id] = replica.broker_epoch
        self._elect(self.state.isr)

    def alter(self, replica: Replica, leader: PartitionLeader, proposal: IsrProposal) -> None:
        """AlterPartition, with the checks of KIP-497 and KIP-903."""
        state = self.state
        if proposal.partition_epoch < state.partition_epoch or proposal.leader_epoch != state.leader_epoch:
            # Overtaken, perhaps by a copy of itself: the leader keeps both in mind until the metadata tell.
            self.send(0, replica.id, lambda: replica.refused(leader, proposal))
            return
        if any(self.unfenced.get(member) != epoch for member, epoch in proposal.isr):
            self.send(0, replica.id, lambda: replica._moved(leader.withdraw(proposal)))
            return
        self._publish(replace(state, isr=proposal.members, partition_epoch=state.partition_epoch + 1))

    # --- what happens to them

    def _produce(self) -> None:
        for replica in self.replicas.values():
            if replica.up and self.random.random() < 0.7:
                replica.produce(f"v{next(self._values)}")
        self.at(self.random.randrange(1, 40), self._produce)

    def _drop_laggards(self) -> None:
        for replica in self.replicas.values():
            if replica.up:
                replica.drop_laggards()
        self.at(LAG_MAX_MS // 2, self._drop_laggards)

    def _break(self) -> None:  # noqa: C901  # one branch for each kind of mishap
        if self._at_peace:
            return
        replica = self.random.choice(list(self.replicas.values()))
        dice = self.random.random()
        if dice < 0.35:
            self._kill(replica)
        elif dice < 0.5:
            for each in self.replicas.values():
                if self.random.random() < 0.7:
                    self._kill(each)
        elif dice < 0.7:
            for other in [*self.replicas, 0]:
                if self.random.random() < 0.7:
                    self.blocked[replica.id, other] = None
                if self.random.random() < 0.7:
                    self.blocked[other, replica.id] = None
            if self.random.random() < 0.6:
                self.at(self.random.randrange(600), lambda: self.fence(replica.id))
                self.at(900, lambda: self._unfence(replica))
        elif dice < 0.8 and self.state.leader >= 0:
            self._elect(self.state.isr, avoid=self.state.leader)
        else:
            self.blocked.clear()
        self.at(self.random.randrange(500), self._break)

    def _unfence(self, replica: Replica) -> None:
        if replica.up and replica.id not in self.unfenced:
            self.unfenced[replica.id] = replica.broker_epoch
            self._elect(self.state.isr)

    def _kill(self, replica: Replica) -> None:
        if not replica.up:
            return
        power = len(self.state.isr) == len(self.ids) and all(each.up for each in self.replicas.values())
        power = power and self.random.random() < 0.4
        replica.up = False
        replica.boots += 1
        replica.leader = replica.follower = None
        replica.waiting.clear()
        self._news[replica.id].clear()
        if power:
            self.fence(replica.id)
            replica.log.cut(self.random.randint(max(0, replica.log.end_offset - 6), replica.log.end_offset))
        elif self.random.random() < 0.7:
            self.at(self.random.randrange(300), lambda: self.fence(replica.id) if not replica.up else None)
        # The mark is read from a checkpoint, which may be old.
        replica.log.high_watermark = self.random.randint(0, replica.log.high_watermark)
        self.at(self.random.choice((5, 100, 1_200)), lambda: self._boot(replica))

    def _boot(self, replica: Replica) -> None:
        if not replica.up:
            replica.up = True
            self._news[replica.id].clear()
            self._marks[replica.id, replica.boots] = 0
            self.register(replica)
            self._tell(replica, self.state)
        elif replica.id not in self.unfenced:
            self._unfence(replica)

    # --- what must hold

    def elected(self, replica: Replica) -> None:
        leader = replica.leader
        assert leader is not None
        first = self.leaders.setdefault(leader.epoch, replica.id)
        if first != replica.id:
            raise Violation("an epoch has one leader", f"{first} and {replica.id} lead epoch {leader.epoch}")
        # Who hears late that it led need not know what later leaders have committed.
        before = max((end for epoch, end in self._ends.items() if epoch < leader.epoch), default=0)
        if replica.log.entries[:before] != self.ledger[:before]:
            raise Violation("a leader holds all that was committed", f"{replica.id} in epoch {leader.epoch}")

    def cut(self, replica: Replica, offset: int) -> None:
        if offset < replica.log.high_watermark:
            raise Violation("a log is not cut below its high watermark", f"{replica.id} at {offset}")

    def look(self, replica: Replica) -> None:
        log = replica.log
        mark = log.high_watermark
        key = (replica.id, replica.boots)
        if mark < self._marks.get(key, 0):
            raise Violation("high watermarks only grow", f"{replica.id}: {mark} after {self._marks[key]}")
        self._marks[key] = mark
        common = min(mark, len(self.ledger))
        if log.entries[:common] != self.ledger[:common]:
            raise Violation("what was committed stays", f"{replica.id} below {mark}")
        if mark > len(self.ledger):
            if replica.leader is None:
                raise Violation("a follower knows no higher mark than its leaders", f"{replica.id}: {mark}")
            self.ledger = log.entries[:mark]
            self._ends[replica.leader.epoch] = mark

    def acknowledged(self, replica: Replica, offset: int, value: str) -> None:
        self.acked[offset] = value
        entry = replica.log.entries[offset]
        holders = sum(
            each.log.end_offset > offset and each.log.entries[offset] == entry for each in self.replicas.values()
        )
        if holders < self.min_isr:
            raise Violation("min.insync.replicas hold what is acknowledged", f"{holders} hold {value}")


def run(seed: int, *, replicas: int = 3, min_isr: int = 2) -> ReplicationWorld:
    world = ReplicationWorld(seed, replicas=replicas, min_isr=min_isr)
    world.run()
    return world
