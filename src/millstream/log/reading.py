"""Reading: which bytes of which file answer a fetch.

A read starts with the batch that holds the offset asked for (clients skip what comes before it) and ends at the
high watermark, the last stable offset or the end of the log, whichever the caller may see. It gives whole batches:
the sparse index knows beginnings of batches about every `index.interval.bytes`, so cutting at the last of them
within the limit costs no look into the file.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from millstream.log.batches import headers_from
from millstream.protocol.errors import OffsetOutOfRange

if TYPE_CHECKING:
    from millstream.log.log import Log
    from millstream.log.segment import Segment
    from millstream.runtime.ports import Descriptor, File

_OPEN_SEGMENTS_MAX = 4


class Slice(NamedTuple):
    """A stretch of a segment's file. Use it before anything else happens to the log: the file may be closed then."""

    file: File
    position: int
    length: int

    def read(self) -> bytes:
        return self.file.read(self.position, self.length)


class Stretch:
    """A stretch of a file that is to be sent. It keeps the file's descriptor open, whatever becomes of the log."""

    __slots__ = ("descriptor", "length", "position")

    def __init__(self, descriptor: Descriptor, position: int, length: int) -> None:
        self.descriptor = descriptor
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def advance(self, sent: int) -> None:
        self.position += sent
        self.length -= sent


class RecentlyOpened:
    """Closed segments whose files are open, the last used at the end. A log of a thousand segments keeps a few open."""

    __slots__ = ("_segments",)

    def __init__(self) -> None:
        self._segments: list[Segment] = []

    def touch(self, segment: Segment) -> None:
        segments = self._segments
        if segment.active or (segments and segments[-1] is segment):
            return
        if segment in segments:
            segments.remove(segment)
        elif len(segments) == _OPEN_SEGMENTS_MAX:
            oldest = segments.pop(0)
            # It may have become the active one again, by truncation.
            if not oldest.active:
                oldest.close()
        segments.append(segment)

    def forget(self, segment: Segment) -> None:
        if segment in self._segments:
            self._segments.remove(segment)


def find(log: Log, offset: int, max_bytes: int, upto_offset: int, *, at_least_one_batch: bool) -> Slice | None:
    """What there is from `offset` on, below `upto_offset`; None if that is nothing (or more than `max_bytes`)."""
    if not log.start_offset <= offset <= log.end_offset:
        raise OffsetOutOfRange(
            f"offset {offset} is not within the log, which holds {log.start_offset} to {log.end_offset}"
        )
    if offset >= upto_offset:
        return None
    active = log.active
    if offset >= active.base_offset:
        position = active.position_of(offset)
        segment, segment_end = active, log.end_offset
    else:
        segments = log.segments
        number = max(0, bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1)
        position = segments[number].position_of(offset)
        while position is None and number + 1 < len(segments):
            # Compaction may have left nothing of a segment from `offset` on: then the answer is in a later one.
            number += 1
            position = segments[number].position_of(offset)
        segment = segments[number]
        log.opened.touch(segment)
        segment_end = segments[number + 1].base_offset if segment is not active else log.end_offset
    if position is None:
        return None
    end: int | None = segment.size
    if upto_offset < segment_end and (end := segment.position_of(upto_offset)) is None:
        end = segment.size
    assert end is not None
    length = end - position
    if length > max_bytes:
        length = segment.whole_batches(position, max_bytes)
        if length == 0 and at_least_one_batch:
            _, header = next(headers_from(segment.file, position, segment.size))
            length = header.size
    return Slice(segment.file, position, length) if length > 0 else None
