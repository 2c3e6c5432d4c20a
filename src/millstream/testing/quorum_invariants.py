"""What must hold of the metadata quorum and of the images, looked at after every turn of every node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.protocol.errors import BrokerError
from millstream.protocol.uuid import ZERO_UUID
from millstream.records.reading import each_batch
from millstream.testing.violations import Violation

if TYPE_CHECKING:
    from millstream.broker.controller_node import ControllerNode
    from millstream.broker.metadata_log import MetadataLog
    from millstream.broker.metadata_snapshot import SnapshotId
    from millstream.broker.node import Node
    from millstream.metadata.image import MetadataImage
    from millstream.testing.simulated_node import SimulatedNode

_READ_BYTES = 1 << 20


@dataclass(slots=True)
class _Seen:
    """What was last seen of one node, in one life."""

    boot: int
    high_watermark: int = 0
    checked_to: int = 0
    begins: tuple[int, SnapshotId | None] = (0, None)
    """Where its log starts, and its oldest snapshot."""
    image: MetadataImage | None = None
    state: tuple[object, ...] | None = None


class QuorumInvariants:
    """Call `look` after each turn."""

    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}
        self.committed: dict[int, tuple[int, int, int]] = {}
        """By base offset: (next offset, epoch, checksum) of what the quorum committed."""
        self.committed_end = 0
        self._seen: dict[int, _Seen] = {}
        self._epochs: dict[tuple[int, int], int] = {}
        """By machine and disk: who has lost its disk begins anew."""
        self._votes: dict[tuple[int, int, int], int] = {}
        self._images: dict[int, MetadataImage] = {}
        self._held: dict[int, ControllerNode] = {}
        """By machine: the controller that ran there last. What it had on disk outlives it."""
        self.images_compared = 0

    def look(self, at: SimulatedNode, node: Node) -> None:
        controller = getattr(node, "controller", None)
        if controller is None:
            return
        seen = self._seen.get(at.id)
        if seen is None or seen.boot != at.boots:
            seen = self._seen[at.id] = _Seen(at.boots)
        quorum = controller.log.quorum
        # All that is judged by below, the log's end included. Mostly nothing of it has changed.
        state = (
            quorum.state, quorum.role, quorum.high_watermark, controller.log.log.start_offset,
            controller.log.log.end_offset, controller.log.has_failed, at.stopped_midway,
        )  # fmt: skip
        if state == seen.state and controller.image is seen.image:
            return
        if not controller.log.has_failed and not at.stopped_midway:
            # Else it may be in an epoch that it could not write down, and that nobody will hear of: it goes down.
            self._roles(at, quorum)
            self._begins(at, controller.log, seen)
        self._held[at.id] = controller
        if quorum.leads and quorum.high_watermark > seen.high_watermark:
            self._majority(at, controller)
        self._log(at, controller.log, quorum.high_watermark, seen)
        if controller.image is not seen.image:
            self._image(at, controller.image, seen)
        seen.state = state

    def _roles(self, at: SimulatedNode, quorum: object) -> None:
        epoch: int = quorum.epoch  # type: ignore[attr-defined]
        before = self._epochs.get((at.id, at.disks), 0)
        if epoch < before:
            raise Violation("epochs only grow", f"{at.host} was in epoch {before}, and is in {epoch}")
        self._epochs[at.id, at.disks] = epoch
        voted: int = quorum.state.voted_id  # type: ignore[attr-defined]
        if voted >= 0:
            # One machine, one vote; a new disk is a new voter.
            first = self._votes.setdefault((at.id, at.disks, epoch), voted)
            if first != voted:
                raise Violation("one vote per epoch", f"{at.host} voted for {first} and {voted} in epoch {epoch}")
        if quorum.leads:  # type: ignore[attr-defined]
            first = self.leaders.setdefault(epoch, at.id)
            if first != at.id:
                raise Violation("an epoch has one leader", f"{at.host} and node {first} lead epoch {epoch}")

    def _majority(self, at: SimulatedNode, leader: ControllerNode) -> None:
        """What is on a disk counts; and logs that agree on an offset's epoch agree on all before it."""
        quorum, mark = leader.log.quorum, leader.log.quorum.high_watermark
        epoch = leader.log.log.epochs.epoch_of(mark - 1)
        holders = []
        for voter in quorum.voters:
            held = self._held.get(voter.id)
            if held is None or voter.directory_id not in (ZERO_UUID, held.config.directory_id):
                continue
            log = held.log.log
            if log.recovery_point >= mark and (log.start_offset >= mark or log.epochs.epoch_of(mark - 1) == epoch):
                holders.append(voter.id)
        if len(holders) < len(quorum.voters) // 2 + 1:
            what = f"{at.host} has committed up to {mark}, which of {quorum.voters.ids()} only {holders} hold on disk"
            raise Violation("a majority holds what is committed", what)

    def _begins(self, at: SimulatedNode, metadata_log: MetadataLog, seen: _Seen) -> None:
        files = metadata_log.files
        start, oldest = files.log.start_offset, files.snapshots[0] if files.snapshots else None
        if seen.begins == (start, oldest):
            return
        seen.begins = (start, oldest)
        if start > 0 and (oldest is None or oldest.end_offset != start):
            what = f"the log on {at.host} starts at {start}, its oldest snapshot is {oldest}"
            raise Violation("a snapshot begins where the log starts", what)
        if oldest is not None and not at.disk.exists(f"{files.directory}/{oldest.file_name}"):
            raise Violation("a snapshot begins where the log starts", f"{oldest} is not on the disk of {at.host}")

    def _log(self, at: SimulatedNode, metadata_log: object, mark: int, seen: _Seen) -> None:
        log = metadata_log.log  # type: ignore[attr-defined]
        if mark < seen.high_watermark:
            raise Violation("high watermarks only grow", f"metadata on {at.host}: {mark} after {seen.high_watermark}")
        if log.end_offset < seen.high_watermark:
            what = f"metadata on {at.host} ends at {log.end_offset}, and {seen.high_watermark} was committed"
            raise Violation("a log is not cut below its high watermark", what)
        seen.high_watermark = mark
        reached = min(mark, log.end_offset)
        if reached <= seen.checked_to:
            return
        for base, entry in _batches(log, max(seen.checked_to, log.start_offset), reached):
            known = self.committed.setdefault(base, entry)
            if known != entry:
                what = f"metadata on {at.host} has {entry} at {base}, committed was {known}"
                raise Violation("what the quorum committed stays", what)
        self.committed_end = max(self.committed_end, reached)
        seen.checked_to = reached

    def _image(self, at: SimulatedNode, image: MetadataImage, seen: _Seen) -> None:
        before, seen.image = seen.image, image
        if before is not None and image.offset < before.offset:
            raise Violation("images go forward", f"{at.host} went from {before.offset} to {image.offset}")
        known = self._images.setdefault(image.offset, image)
        # Before the first record there is nothing to agree on but what formatting wrote.
        if known is not image and image.offset >= 0:
            self.images_compared += 1
            if known != image:
                differ = [name for name in image.__struct_fields__ if getattr(known, name) != getattr(image, name)]
                what = f"{at.host} differs at {image.offset} in {', '.join(differ)}"
                raise Violation("images of one offset are equal", what)
        if before is not None and before.topics is image.topics:
            return
        for topic in image.topics.by_name.values():
            if before is not None and before.topics.by_id.get(topic.id) is topic:
                continue
            self._partitions(topic.name, topic.partitions, before and before.topics.by_id.get(topic.id))

    def _partitions(self, name: str, partitions: object, before: object) -> None:
        for index, partition in partitions.items():  # type: ignore[attr-defined]
            place = f"{name}-{index}"
            if not partition.replicas or len(dict.fromkeys(partition.replicas)) != len(partition.replicas):
                raise Violation("replicas are named once", f"{place}: {partition.replicas}")
            if any(member not in partition.replicas for member in partition.isr):
                raise Violation("the ISR is a part of the replicas", f"{place}: {partition.isr}")
            if any(member in partition.isr or member not in partition.replicas for member in partition.elr):
                raise Violation("eligible leaders are replicas outside the ISR", f"{place}: {partition.elr}")
            if partition.leader >= 0 and partition.leader not in partition.isr:
                raise Violation("a leader is in sync", f"{place}: {partition.leader} not in {partition.isr}")
            old = before.partitions.get(index) if before is not None else None  # type: ignore[attr-defined]
            if old is not None:
                if partition.leader_epoch < old.leader_epoch or partition.partition_epoch < old.partition_epoch:
                    raise Violation("epochs only grow", f"{place}: {old} became {partition}")
                if partition.leader not in (old.leader, -1) and partition.leader_epoch == old.leader_epoch:
                    raise Violation("a new leader has a new epoch", f"{place}: {old} became {partition}")


def _batches(log: object, begin: int, end: int) -> list[tuple[int, tuple[int, int, int]]]:
    found: list[tuple[int, tuple[int, int, int]]] = []
    position = begin
    while position < end:
        try:
            data = log.read(position, _READ_BYTES, end, at_least_one_batch=True)  # type: ignore[attr-defined]
        except BrokerError:
            break
        before = position
        for _, header in each_batch(data or b""):
            if header.next_offset > end:
                return found
            if header.base_offset >= begin:
                found.append((header.base_offset, (header.next_offset, header.leader_epoch, header.crc)))
            position = max(position, header.next_offset)
        if position == before:
            break
    return found
