"""One partition on several brokers, without sockets, disks and clocks: the pure rules of leader and follower, driven
step by step by a test, with a controller that does what it is told.

    cluster = Cluster(replicas=3)
    cluster.append("a")                # at whoever leads, as far as the newest metadata go
    cluster.fetch(2)                   # broker 2 fetches once from the leader that it knows
    cluster.elect(2, heard_by=[2, 3])  # broker 1 does not hear of it
    cluster.check()                    # nothing committed is lost or differs

A broker is told of metadata separately (`hear`), so that stale leaders and followers can be played.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.log.epochs import EpochStart, LeaderEpochs
from millstream.protocol.errors import BrokerError, NotLeader, OffsetOutOfRange
from millstream.protocol.messages.fetch import EpochEndOffset, PartitionData
from millstream.replication.follower import (
    AdvanceHighWatermark,
    AdvanceStart,
    Append,
    AskForOffsets,
    AwaitMetadata,
    Effect,
    PartitionFollower,
    Position,
    StartAnew,
    Truncate,
    TryAgainLater,
)
from millstream.replication.leader import PartitionLeader

if TYPE_CHECKING:
    from collections.abc import Iterable

LAG_MAX_MS = 1_000


class Epochs(LeaderEpochs):
    """The real cache, without its file."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        super().__init__(None, "", None, list(entries))  # type: ignore[arg-type]  # nothing is written

    def save(self) -> None:
        self._dirty = False


@dataclass
class ModelLog:
    """Records with the epoch of their leader; offsets are places in the list."""

    records: list[tuple[int, str]] = field(default_factory=list)
    start_offset: int = 0
    high_watermark: int = 0
    epochs: Epochs = field(default_factory=Epochs)

    @property
    def end_offset(self) -> int:
        return len(self.records)

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> EpochStart:
        return self.epochs.end_offset_for(epoch, self.end_offset)

    def append(self, records: Iterable[tuple[int, str]]) -> None:
        for epoch, value in records:
            if epoch > self.epochs.latest_epoch:
                self.epochs.assign(epoch, self.end_offset)
            self.records.append((epoch, value))

    def truncate(self, offset: int) -> None:
        del self.records[offset:]
        self.start_offset = min(self.start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.epochs.truncate_from_end(offset)

    def start_anew(self, offset: int) -> None:
        self.records = [(-1, "gone")] * offset
        self.start_offset = self.high_watermark = offset
        self.epochs = Epochs()

    def values(self) -> str:
        return "".join(value for _, value in self.records)


@dataclass(frozen=True)
class Metadata:
    """What the controller has decided last."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    broker_epochs: dict[int, int]


class Replica:
    """One broker's replica."""

    def __init__(self, broker_id: int) -> None:
        self.id = broker_id
        self.log = ModelLog()
        self.leader: PartitionLeader | None = None
        self.follower: PartitionFollower | None = None
        self.metadata: Metadata | None = None
        self.broker_epoch = 0
        self.effects: list[Effect] = []


class Cluster:
    """See the module's docstring. Broker 1 leads epoch 0 at the beginning, and all are in sync."""

    def __init__(self, replicas: int = 3, min_isr: int = 1) -> None:
        self.ids = tuple(range(1, replicas + 1))
        self.min_isr = min_isr
        self.now_ms = 0
        self.replicas = {broker_id: Replica(broker_id) for broker_id in self.ids}
        self.committed: list[tuple[int, str]] = []
        self.metadata = Metadata(1, 0, 0, self.ids, dict.fromkeys(self.ids, 0))
        for broker_id in self.ids:
            self.hear(broker_id)

    def __getitem__(self, broker_id: int) -> Replica:
        return self.replicas[broker_id]

    # --- the controller

    def elect(self, leader: int, *, isr: tuple[int, ...] | None = None, heard_by: Iterable[int] | None = None) -> None:
        """A new leader epoch; everybody hears of it, or only those named."""
        before = self.metadata
        self.metadata = Metadata(
            leader,
            before.leader_epoch + 1,
            before.partition_epoch + 1,
            before.isr if isr is None else isr,
            before.broker_epochs,
        )
        for broker_id in self.ids if heard_by is None else heard_by:
            self.hear(broker_id)

    def alter(self, leader_id: int) -> bool:
        """The controller gets the proposal that this leader has, and checks it; whether it agrees."""
        leader = self[leader_id].leader
        assert leader is not None
        assert leader.proposal is not None
        asked, now = leader.proposal, self.metadata
        known = (leader_id, asked.leader_epoch, asked.partition_epoch)
        if known != (now.leader, now.leader_epoch, now.partition_epoch):
            return False
        if any(epoch not in (-1, now.broker_epochs[member]) for member, epoch in asked.isr):
            leader.withdraw(asked)
            return False
        self.metadata = Metadata(
            now.leader, now.leader_epoch, now.partition_epoch + 1, asked.members, now.broker_epochs
        )
        return True

    def proposed_by(self, leader_id: int) -> tuple[int, ...] | None:
        """The ISR that a leader has proposed and not heard of yet."""
        leader = self[leader_id].leader
        return None if leader is None or leader.proposal is None else leader.proposal.members

    def fence(self, broker_id: int) -> None:
        """The controller takes a broker out of the ISR, if others are in it."""
        now = self.metadata
        isr = tuple(member for member in now.isr if member != broker_id) or now.isr
        if isr != now.isr:
            self.metadata = Metadata(now.leader, now.leader_epoch, now.partition_epoch + 1, isr, now.broker_epochs)

    # --- brokers

    def hear(self, broker_id: int) -> None:
        """The newest metadata reach a broker."""
        replica, now = self[broker_id], self.metadata
        replica.metadata = now
        if now.leader == broker_id:
            if replica.leader is not None and replica.leader.epoch == now.leader_epoch:
                replica.leader.committed(isr=now.isr, partition_epoch=now.partition_epoch, replicas=self.ids)
            else:
                log = replica.log
                replica.follower = None
                replica.leader = PartitionLeader(
                    node_id=broker_id,
                    epoch=now.leader_epoch,
                    replicas=self.ids,
                    isr=now.isr,
                    min_isr=self.min_isr,
                    own_end=log.end_offset,
                    high_watermark=log.high_watermark,
                    partition_epoch=now.partition_epoch,
                    epoch_start_offset=log.end_offset,
                    now_ms=self.now_ms,
                )
                log.epochs.assign(now.leader_epoch, log.end_offset)
            self._advanced(replica)
        elif replica.follower is None or replica.follower.epoch != now.leader_epoch:
            replica.leader = None
            replica.follower = PartitionFollower(now.leader, now.leader_epoch)

    def reboot(self, broker_id: int, *, keep: int | None = None) -> None:
        """A crash, which loses what is at `keep` and above; the broker comes back with a new broker epoch."""
        self.fence(broker_id)
        replica = self[broker_id]
        if keep is not None:
            replica.log.truncate(keep)
        replica.leader = replica.follower = None
        replica.broker_epoch += 1
        epochs = {**self.metadata.broker_epochs, broker_id: replica.broker_epoch}
        now = self.metadata
        self.metadata = Metadata(now.leader, now.leader_epoch, now.partition_epoch, now.isr, epochs)

    def append(self, values: str, at: int | None = None) -> None:
        """Each letter is a record."""
        replica = self[self.metadata.leader if at is None else at]
        leader = replica.leader
        assert leader is not None
        replica.log.append((leader.epoch, value) for value in values)
        leader.own_log_reached(replica.log.end_offset)
        self._advanced(replica)

    def _advanced(self, replica: Replica) -> None:
        leader = replica.leader
        assert leader is not None
        replica.log.high_watermark = max(replica.log.high_watermark, leader.high_watermark)
        mark = leader.high_watermark
        news = replica.log.records[len(self.committed) : mark]
        assert replica.log.records[: min(mark, len(self.committed))] == self.committed[:mark], "committed twice"
        self.committed += news

    def fetch(self, broker_id: int, *, decide: bool = True) -> list[Effect]:
        """One fetch of a follower from the leader that it believes in, and what came of it."""
        replica = self[broker_id]
        follower = replica.follower
        if follower is None:
            return []
        asked = follower.position(replica.log)
        return self.take(broker_id, asked, self.answer(broker_id, asked, decide=decide))

    def answer(
        self, broker_id: int, asked: Position, *, broker_epoch: int | None = None, decide: bool = True
    ) -> PartitionData:
        """What the leader that the follower believes in says; `decide` lets the controller act on proposals at once."""
        follower = self[broker_id].follower
        assert follower is not None
        source = self[follower.leader_id]
        epoch = self[broker_id].broker_epoch if broker_epoch is None else broker_epoch
        try:
            return self._serve(source, broker_id, asked, epoch, decide=decide)
        except BrokerError as refusal:
            return PartitionData(
                partition_index=0,
                error_code=refusal.code,
                high_watermark=-1,
                aborted_transactions=None,
                records=b"",
            )

    def _serve(
        self, source: Replica, broker_id: int, asked: Position, broker_epoch: int, *, decide: bool
    ) -> PartitionData:
        leader, log = source.leader, source.log
        if leader is None:
            raise NotLeader
        leader.check_epoch(asked.leader_epoch)
        told = PartitionData(
            partition_index=0,
            high_watermark=log.high_watermark,
            log_start_offset=log.start_offset,
            aborted_transactions=None,
            records=b"",
        )
        if asked.last_fetched_epoch >= 0:
            epoch, end = log.end_offset_for_epoch(asked.last_fetched_epoch)
            if epoch < asked.last_fetched_epoch or end < asked.offset:
                told.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
                return told
        if not log.start_offset <= asked.offset <= log.end_offset:
            raise OffsetOutOfRange
        follower = leader.follower(broker_id, asked.leader_epoch)
        leader.follower_fetched(
            follower,
            asked.offset,
            broker_epoch=broker_epoch,
            start_offset=0,
            leader_end=log.end_offset,
            now_ms=self.now_ms,
        )
        self._advanced(source)
        assert source.metadata is not None
        alive = source.metadata.broker_epochs[broker_id] == broker_epoch
        if alive and leader.may_join(follower):
            leader.propose((*leader.isr, broker_id), source.broker_epoch)
            if decide and self.alter(source.id):
                self.hear(source.id)
        told.high_watermark = log.high_watermark
        told.records = log.records[asked.offset :]  # type: ignore[assignment]  # the model's records are no bytes
        return told

    def take(self, broker_id: int, asked: Position, answer: PartitionData) -> list[Effect]:
        """A follower gets an answer."""
        replica = self[broker_id]
        follower, log = replica.follower, replica.log
        if follower is None:
            return []
        effects = list(follower.after_fetch(asked, answer, log))
        if effects == [AskForOffsets()]:
            source = self[follower.leader_id].log
            effects = list(follower.after_offsets(asked, source.start_offset, source.end_offset, log))
        for effect in effects:
            match effect:
                case Append(records):
                    log.append(records)  # type: ignore[arg-type]  # the model's records are no bytes
                case AdvanceHighWatermark(offset):
                    log.high_watermark = max(log.high_watermark, min(offset, log.end_offset))
                case AdvanceStart(offset):
                    log.start_offset = min(offset, log.high_watermark)
                case Truncate(offset):
                    log.truncate(offset)
                case StartAnew(offset):
                    log.start_anew(offset)
                case TryAgainLater() | AwaitMetadata() | AskForOffsets():
                    pass
        replica.effects = effects
        return effects

    def shrink(self, leader_id: int, *, decide: bool = True) -> None:
        """Time passes, and the leader looks for those who lag."""
        replica = self[leader_id]
        leader = replica.leader
        if leader is None or leader.proposal is not None:
            return
        lagging = leader.lagging(replica.log.end_offset, self.now_ms, LAG_MAX_MS)
        if lagging:
            leader.propose([member for member in leader.isr if member not in lagging], replica.broker_epoch)
            if decide and self.alter(leader_id):
                self.hear(leader_id)

    def settle(self) -> None:
        """Everybody hears everything, and fetches until nothing changes."""
        for broker_id in self.ids:
            self.hear(broker_id)
        for _ in range(4 * len(self.ids) + 4):
            for broker_id in self.ids:
                self.fetch(broker_id)
                self.hear(broker_id)

    # --- what must hold

    def check(self) -> None:
        """Everything that was ever committed is on every member of the true ISR; what any replica shows as committed
        is that."""
        for member in self.metadata.isr:
            log = self[member].log
            assert log.records[: len(self.committed)] == self.committed, f"broker {member} lacks committed records"
        for replica in self.replicas.values():
            shown = replica.log.records[: replica.log.high_watermark]
            assert shown == self.committed[: len(shown)], f"broker {replica.id} shows what was not committed"
