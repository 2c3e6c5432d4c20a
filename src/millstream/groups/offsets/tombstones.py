"""The removal of offsets from the log, in bounded steps.

A batch has to fit into what its topic takes (KAFKA-17058: an expiry of 100,000 offsets at once did not, and none of
them ever went away). Who removes many offsets collects as many as one batch holds and goes on from the next turn of
the loop.
"""

from __future__ import annotations

from millstream.protocol.messages.groups.offset_commit import OffsetCommitKey
from millstream.replicated import Record

RECORDS_MAX = 1_000
# A name may have thousands of characters, of up to four bytes each.
KEY_BYTES_MAX = 400_000
_RECORD_OVERHEAD_BYTES = 32


class TombstoneBatch:
    """The tombstones of one decision."""

    __slots__ = ("_room_bytes", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._room_bytes = KEY_BYTES_MAX

    @property
    def is_full(self) -> bool:
        return len(self.records) >= RECORDS_MAX or self._room_bytes <= 0

    def add(self, group_id: str, topic: str, partition: int) -> None:
        self.records.append(tombstone(group_id, topic, partition))
        self._room_bytes -= 4 * (len(group_id) + len(topic)) + _RECORD_OVERHEAD_BYTES


def tombstone(group_id: str, topic: str, partition: int) -> Record:
    """What removes one offset from the log."""
    return Record(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
