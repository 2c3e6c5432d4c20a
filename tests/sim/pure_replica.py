"""One broker's copy of a partition in the world of replication_world.py: the pure rules around a log that is a list."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.fetch import EpochEndOffset, PartitionData
from millstream.replication import follower as follows
from millstream.replication.leader import IsrProposal, PartitionLeader
from millstream.testing.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.replication.follower import Position
    from tests.sim.replication_world import ReplicationWorld

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
