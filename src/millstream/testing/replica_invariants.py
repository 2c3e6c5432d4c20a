"""What must hold of partitions, looked at after every turn of every node.

The heart is a ledger of what was ever committed: when a leader's high watermark passes a batch, its place, epoch and
checksum go in. From then on every replica whose own mark passes that place must hold the same batch, and whoever is
elected must hold all of them. So a lost or changed record is found in the turn in which somebody could first see it,
and not at the end of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from millstream.client.fetch import Fetched
from millstream.client.reading import batches_from
from millstream.metadata.image import EMPTY_IMAGE
from millstream.protocol.errors import BrokerError
from millstream.protocol.messages.fetch import AbortedTransaction
from millstream.records.reading import each_batch
from millstream.testing.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.broker.node import Node
    from millstream.broker.partition import Partition
    from millstream.log.log import Log
    from millstream.metadata.image import MetadataImage
    from millstream.protocol.uuid import Uuid
    from millstream.testing.simulated_node import SimulatedNode

    Key = tuple[Uuid, int]
    Newest = dict[bytes, tuple[int, bytes]]

_READ_BYTES = 1 << 20
MIN_ISR_HOLD = "min.insync.replicas hold what is committed"
IN_SYNC_HOLD = "every in-sync replica holds what is committed"


class Entry(NamedTuple):
    """A batch that was committed."""

    next_offset: int
    epoch: int
    crc: int


@dataclass(slots=True)
class Ledger:
    """What was committed in one partition, by base offset."""

    entries: dict[int, Entry] = field(default_factory=dict)
    end: int = 0
    leaders: dict[int, int] = field(default_factory=dict)
    """By epoch: who led it."""
    ends: dict[int, int] = field(default_factory=dict)
    """By epoch: how far its leader has committed."""

    def end_before(self, epoch: int) -> int:
        """How far the leaders of earlier epochs have committed. Later ones may have gone on already when a leader that
        was slow to hear of its election hears of it."""
        return max((end for other, end in self.ends.items() if other < epoch), default=0)


@dataclass(slots=True)
class _Seen:
    """What was last seen of one replica, in one life of its node. One that was moved away and comes back is new."""

    boot: int
    partition: Partition
    epoch: int = -1
    leads: bool = False
    high_watermark: int = 0
    checked_to: int = 0


class ReplicaInvariants:
    """Call `look` after each turn."""

    def __init__(self) -> None:
        self.ledgers: dict[Key, Ledger] = {}
        self._image: MetadataImage = EMPTY_IMAGE
        """The newest that any node has committed: its ISRs are the true ones, whatever a leader believes."""
        self._seen: dict[tuple[int, Key], _Seen] = {}
        self._looked_at: dict[Partition, tuple[object, int, int]] = {}
        self._newest: dict[Key, tuple[str, Newest]] = {}

    def look(self, at: SimulatedNode, node: Node) -> None:
        controller = getattr(node, "controller", None)
        if controller is not None and controller.image.offset > self._image.offset:
            self._isrs_changed(controller.image)
        for partition in self._changed(node):
            # A leader whose files fail still counts what its followers acknowledge, and may write the mark down.
            if partition.log.closed or (partition.log.is_offline and partition.leader is None):
                continue
            key = (partition.topic_id, partition.index)
            seen = self._seen.get((at.id, key))
            if seen is None or seen.boot != at.boots or seen.partition is not partition:
                seen = self._seen[at.id, key] = _Seen(at.boots, partition)
            leader = partition.leader
            if leader is not None and leader.epoch != seen.epoch:
                self._elected(at, partition, self._ledger(key), leader.epoch)
                if leader.epoch < seen.epoch:
                    raise Violation("epochs only grow", f"{_name(at, partition)}: {leader.epoch} after {seen.epoch}")
                seen.epoch = leader.epoch
            mark = partition.log.high_watermark
            if mark != seen.high_watermark:
                self._mark_moved(at, partition, self._ledger(key), seen, mark)
            seen.leads = leader is not None
            if partition.log.end_offset < mark:
                raise Violation("a log is not cut below its high watermark", _name(at, partition))
            self._looked_at[partition] = (leader, mark, partition.log.end_offset)

    def _changed(self, node: Node) -> list[Partition]:
        """Those whose role, high watermark or end has changed since `look` found them in order: all that it judges by.
        There are hardly ever any, and nothing is asked more often in a simulation."""
        looked_at = self._looked_at
        return [
            partition
            for topic in node.partitions.by_name.values()
            for partition in topic.partitions.values()
            if (seen := looked_at.get(partition)) is None
            or seen[0] is not partition.leader
            or seen[1] != partition.log.high_watermark
            or seen[2] != partition.log.end_offset
        ]

    def _ledger(self, key: Key) -> Ledger:
        return self.ledgers.setdefault(key, Ledger())

    def _elected(self, at: SimulatedNode, partition: Partition, ledger: Ledger, epoch: int) -> None:
        first = ledger.leaders.setdefault(epoch, at.id)
        if first != at.id:
            raise Violation("an epoch has one leader", f"{_name(at, partition)}: {first} leads epoch {epoch}, too")
        log = partition.log
        end = ledger.end_before(epoch)
        if log.end_offset < end:
            what = f"{_name(at, partition)} leads epoch {epoch} and ends at {log.end_offset}, not {end}"
            raise Violation("a leader holds all that was committed", what)
        self._compare(at, partition, ledger, log.start_offset, end, "a leader holds all that was committed")
        if log.latest_epoch != epoch and not log.is_offline:
            # KAFKA-7415: else two logs that part where neither knows the other's epoch cannot be told apart.
            what = f"{_name(at, partition)} leads epoch {epoch}, and its log knows of {log.latest_epoch}"
            raise Violation("a leader knows where its epoch begins", what)

    def _mark_moved(self, at: SimulatedNode, partition: Partition, ledger: Ledger, seen: _Seen, mark: int) -> None:
        log = partition.log
        if mark < seen.high_watermark:
            what = f"{_name(at, partition)}: {mark} after {seen.high_watermark}"
            raise Violation("high watermarks only grow", what)
        seen.high_watermark = mark
        begin = max(seen.checked_to, log.start_offset)
        # Of several changes that come in one turn the first may let a leader commit more, and the last take its place.
        leads = partition.leader is not None or seen.leads
        if not leads and mark > ledger.end:
            what = f"{_name(at, partition)} follows with {mark}, where {ledger.end} is committed"
            raise Violation("a follower knows no higher mark than its leaders", what)
        self._compare(at, partition, ledger, begin, min(mark, ledger.end), "committed records stay as they are")
        if partition.leader is not None and mark > begin:
            self._in_sync_hold(at, partition, mark)
        if mark > ledger.end:
            for base, entry in _batches(log, max(ledger.end, log.start_offset), mark):
                ledger.entries[base] = entry
            ledger.end = mark
            ledger.ends[seen.epoch] = mark
        seen.checked_to = mark

    def _in_sync_hold(self, at: SimulatedNode, leader: Partition, mark: int) -> None:
        """Every member of the ISR, and every eligible leader, holds what this leader takes for committed."""
        state = self._image.topics.partition(leader.topic_id, leader.index)
        if state is None or leader.log.is_offline:
            return
        key, synced = (leader.topic_id, leader.index), leader.waits_for_disk
        epoch = leader.log.epochs.epoch_of(mark - 1)
        need = leader.leader.effective_min_isr if leader.leader is not None else 0
        holders = [member for member in state.replicas if self._holds(member, key, mark, epoch, synced=synced)]
        if len(holders) < need:
            what = f"{_name(at, leader)} has committed {mark}, which {holders} hold, where {need} are required"
            raise Violation(MIN_ISR_HOLD, what)
        for member in (*state.isr, *state.elr):
            held = self._seen.get((member, key))
            if held is None:
                raise Violation(IN_SYNC_HOLD, f"{_name(at, leader)} has committed {mark}, and {member} has no log")
            if member not in holders:
                end = _held(held.partition.log, synced=synced)
                what = f"{_name(at, leader)} has committed {mark} in epoch {epoch}, {member} holds {end} of it"
                raise Violation(IN_SYNC_HOLD, f"{what} ({'on disk' if synced else 'in its log'})")

    def _holds(self, member: int, key: Key, mark: int, epoch: int | None, *, synced: bool) -> bool:
        """Logs that agree on an offset's epoch agree on all before it."""
        held = self._seen.get((member, key))
        if held is None or _held(held.partition.log, synced=synced) < mark:
            return False
        log = held.partition.log
        return log.start_offset >= mark or log.epochs.epoch_of(mark - 1) == epoch

    def _isrs_changed(self, image: MetadataImage) -> None:
        """Who comes into an ISR holds all that was committed until then."""
        before, self._image = self._image, image
        for topic in image.topics.by_id.values() if image.topics is not before.topics else ():
            old = before.topics.by_id.get(topic.id)
            if old is topic:
                continue
            for index, partition in topic.partitions.items():
                then = None if old is None else old.partitions.get(index)
                if then is None or then.isr == partition.isr:
                    continue
                ledger = self._ledger((topic.id, index))
                for member in partition.isr:
                    held = self._seen.get((member, (topic.id, index)))
                    # Not what is synced: who is elected after a kill has what it wrote, and says nothing of its disk.
                    end = 0 if held is None else held.partition.log.end_offset
                    if member not in then.isr and end < ledger.end:
                        what = f"{member} came into the ISR of {topic.name}-{index}, where {ledger.end} is committed"
                        raise Violation(IN_SYNC_HOLD, f"{what}, and holds {end}")

    def _compare(
        self, at: SimulatedNode, partition: Partition, ledger: Ledger, begin: int, end: int, rule: str
    ) -> None:
        if begin >= end or partition.log.config.compact:
            return
        for base, entry in _batches(partition.log, begin, end):
            known = ledger.entries.get(base)
            if known is not None and known != entry:
                raise Violation(rule, f"{_name(at, partition)} has {entry} at {base}, committed was {known}")
            if known is None and ledger.entries and base >= min(ledger.entries):
                raise Violation(rule, f"{_name(at, partition)} has a batch at {base} that never was committed there")

    def at_rest(self, nodes: list[tuple[SimulatedNode, Node]]) -> Iterator[Violation]:
        """When nothing moves any more, all replicas are alike and hold everything."""
        for at, node in nodes:
            for partition in node.partitions:
                ledger = self.ledgers.get((partition.topic_id, partition.index))
                if ledger is None:
                    continue
                if partition.log.end_offset < ledger.end:
                    what = f"{_name(at, partition)} ends at {partition.log.end_offset}, not {ledger.end}"
                    yield Violation("every replica catches up", what)
                    continue
                try:
                    self._compare(
                        at, partition, ledger, partition.log.start_offset, ledger.end, "replicas are alike at rest"
                    )
                except Violation as violation:
                    yield violation
                if partition.log.config.compact:
                    yield from self._compare_newest(at, partition)

    def _compare_newest(self, at: SimulatedNode, partition: Partition) -> Iterator[Violation]:
        """Each replica compacts on its own, and when it likes: what is left differs, the newest values don't."""
        newest = newest_values(partition.log)
        first = self._newest.setdefault((partition.topic_id, partition.index), (at.host, newest))
        if first[1] != newest:
            host, other = first
            differ = sorted(key for key in {**newest, **other} if newest.get(key) != other.get(key))
            what = f"{_name(at, partition)} and {host} differ in {len(differ)} keys, {differ[0]!r} first"
            yield Violation("compacted replicas agree on the newest values", what)


def _batches(log: Log, begin: int, end: int) -> Iterator[tuple[int, Entry]]:
    position = begin
    while position < end:
        try:
            data = log.read(position, _READ_BYTES, end, at_least_one_batch=True)
        except BrokerError:
            # Retention or a broken file: what cannot be read proves nothing.
            return
        if not data:
            return
        before = position
        for _, header in each_batch(data):
            if header.next_offset > end:
                return
            yield header.base_offset, Entry(header.next_offset, header.leader_epoch, header.crc)
            position = max(position, header.next_offset)
        if position == before:
            return


def newest_values(log: Log) -> Newest:
    """By key: (offset, value) of the newest committed record that deletes nothing."""
    begin, end = log.start_offset, log.last_stable_offset
    data = b"".join(_all_bytes(log, begin, end))
    aborted = tuple(
        AbortedTransaction(producer_id=producer_id, first_offset=offset)
        for producer_id, offset in log.aborted_transactions(begin, end)
    )
    found: Newest = {}
    for batch in batches_from(Fetched("", 0, memoryview(data), end, end, begin, aborted), begin, read_committed=True):
        for record in batch.records:
            key = bytes(record.key or b"")
            found.pop(key, None)
            if record.value is not None:
                found[key] = (record.offset, bytes(record.value))
    return found


def _all_bytes(log: Log, begin: int, end: int) -> Iterator[bytes]:
    position = begin
    while position < end and (data := log.read(position, _READ_BYTES, end, at_least_one_batch=True)):
        yield data
        for _, header in each_batch(data):
            position = max(position, header.next_offset)


def _held(log: Log, *, synced: bool) -> int:
    """How far a replica's log speaks for it."""
    return log.recovery_point if synced else log.end_offset


def _name(at: SimulatedNode, partition: Partition) -> str:
    return f"{partition.topic}-{partition.index} on {at.host}"
