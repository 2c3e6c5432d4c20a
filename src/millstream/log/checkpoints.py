"""Offsets of all partitions of a log directory, one file per purpose, as Kafka writes them.

    0, the number of entries, and then `topic partition offset`, each on a line

They are written whole or not at all. One that cannot be read counts as empty, which is always safe: a recovery point
of 0 means a longer scan, a missing log start lets deleted records be seen until retention takes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.runtime.ports import Disk

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_POINTS = "cleaner-offset-checkpoint"

TopicPartition = tuple[str, int]


def encode(offsets: Mapping[TopicPartition, int]) -> bytes:
    lines = ["0", str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode("utf-8")


def decode(content: bytes) -> dict[TopicPartition, int] | None:
    """None if the file is not whole."""
    try:
        lines = content.decode("utf-8").split("\n")
        if lines.pop() or int(lines[0]) != 0 or int(lines[1]) != len(lines) - 2:
            return None
        offsets = {}
        for line in lines[2:]:
            topic, partition, offset = line.split(" ")
            offsets[topic, int(partition)] = int(offset)
    except (ValueError, IndexError):
        return None
    return offsets


class OffsetCheckpoint:
    """One such file."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self._written: bytes | None = None

    def read(self) -> dict[TopicPartition, int]:
        if not self._disk.exists(self.path):
            return {}
        content = self._disk.read_file(self.path)
        self._written = content
        return decode(content) or {}

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Durable when it returns; nothing happens if the file says the same already."""
        content = encode(offsets)
        if content != self._written:
            self._disk.replace_file(self.path, content)
            self._written = content
