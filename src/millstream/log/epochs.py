"""Which leader epoch began at which offset: the cache that truncation by epoch (KIP-101, KIP-279) stands on.

    leader-epoch-checkpoint:   0, the number of entries, and then `epoch start-offset`, each on a line

An epoch is entered when a broker becomes leader, before it writes (KAFKA-7415), and when a follower meets it in a
batch. Epochs and offsets both grow, so an epoch that wrote nothing is replaced by the next one at the same offset
(KAFKA-10706). The file is written whole beside the old one and renamed, which a kill cannot tear; its fsync comes with
the log's next flush. Should power fail in between (KAFKA-16541), a file that does not read as a whole is thrown away
and the entries are found again in the headers of the batches: nothing but epochs without records is lost by that.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from millstream.log import names

if TYPE_CHECKING:
    from millstream.log.flushing import Unsynced
    from millstream.runtime.ports import Disk

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochStart(NamedTuple):
    """The first offset of a leader's epoch."""

    epoch: int
    start_offset: int


class CorruptEpochs(Exception):
    """The checkpoint was not written to its end."""


def parse(content: bytes) -> list[EpochStart]:
    lines = content.decode("ascii", "replace").split("\n")
    try:
        if lines.pop() or int(lines[0]) != 0 or int(lines[1]) != len(lines) - 2:
            raise CorruptEpochs("the file is cut off")
        entries = [EpochStart(*map(int, line.split(" "))) for line in lines[2:]]
    except (ValueError, TypeError, IndexError) as error:
        raise CorruptEpochs(f"not a leader epoch checkpoint: {error}") from error
    for earlier, later in pairwise(entries):
        if earlier.epoch >= later.epoch or earlier.start_offset > later.start_offset:
            raise CorruptEpochs("epochs and offsets must grow")
    return entries


class LeaderEpochs:
    """The epochs of one log, oldest first."""

    def __init__(self, disk: Disk, directory: str, unsynced: Unsynced, entries: list[EpochStart]) -> None:
        self._disk = disk
        self.path = f"{directory}/{names.LEADER_EPOCHS}"
        self._entries = entries
        self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH
        self._unsynced = unsynced
        self._dirty = False

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> EpochStart | None:
        return self._entries[-1] if self._entries else None

    def assign(self, epoch: int, start_offset: int, *, save: bool = True) -> bool:
        """Enter an epoch; False if it is known already."""
        entries = self._entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochStart(epoch, start_offset))
        self.latest_epoch = epoch
        self._dirty = True
        if save:
            self.save()
        return True

    def save_if_changed(self) -> None:
        """For a scan, which enters many before it saves once."""
        if self._dirty:
            self.save()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochStart:
        """The largest known epoch up to `epoch`, and where it ended: the answer of OffsetForLeaderEpoch."""
        entries = self._entries
        if epoch == UNDEFINED_EPOCH or not entries or epoch > self.latest_epoch:
            return EpochStart(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest_epoch:
            return EpochStart(epoch, log_end_offset)
        higher = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        return EpochStart(entries[higher - 1].epoch if higher else epoch, entries[higher].start_offset)

    def epoch_of(self, offset: int) -> int | None:
        """The epoch in which `offset` was (or will be) written."""
        found = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[found - 1].epoch if found else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or above the new end of the log."""
        entries = self._entries
        if entries and entries[-1].start_offset >= end_offset:
            while entries and entries[-1].start_offset >= end_offset:
                entries.pop()
            self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH
            self.save()

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the epoch that holds the new start of the log begin there, and forget older ones."""
        entries = self._entries
        gone = bisect_right(entries, start_offset, key=lambda entry: entry.start_offset)
        if gone and (gone > 1 or entries[0].start_offset != start_offset):
            entries[:gone] = [EpochStart(entries[gone - 1].epoch, start_offset)]
            self.save()

    def clear(self) -> None:
        self._entries.clear()
        self.latest_epoch = UNDEFINED_EPOCH
        self.save()

    def save(self) -> None:
        self._dirty = False
        lines = ["0", str(len(self._entries)), *(f"{epoch} {offset}" for epoch, offset in self._entries), ""]
        temporary = self.path + ".tmp"
        file = self._disk.create(temporary)
        try:
            file.append("\n".join(lines).encode("ascii"))
        finally:
            file.close()
        self._disk.rename(temporary, self.path)
        self._unsynced.wrote(self.path, names_changed=True)
