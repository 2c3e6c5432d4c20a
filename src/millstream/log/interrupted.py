"""What a stop in the middle of compaction, retention or truncation leaves behind (KAFKA-12520).

`.deleted` was on its way out; `.cleaned` is a replacement that was never finished: both go. `.swap` is a replacement
that is whole and synced, and whose originals may be gone already: it is put in place. If `.cleaned` files stand
beside `.swap` ones, not all of a group had become `.swap`, so none of the originals were touched: those `.swap` at
or above the lowest `.cleaned` go, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.log import names
from millstream.log.batches import headers_from
from millstream.protocol.errors import CorruptMessage

if TYPE_CHECKING:
    from millstream.log.segment import Segment
    from millstream.runtime.ports import Disk


def settle(disk: Disk, directory: str, files: list[str]) -> list[str]:
    """Finish or undo what was interrupted; returns the names that are there afterwards."""
    if not any(name.endswith((names.DELETED, names.CLEANED, names.SWAP)) for name in files):
        return files
    cleaned = [names.offset_of(name) for name in files if name.endswith(names.CLEANED)]
    lowest_cleaned = min((offset for offset in cleaned if offset is not None), default=None)
    swaps: list[str] = []
    for name in files:
        offset = names.offset_of(name)
        if name.endswith((names.DELETED, names.CLEANED)):
            disk.remove(f"{directory}/{name}")
        elif name.endswith(names.SWAP) and offset is not None:
            if lowest_cleaned is not None and offset >= lowest_cleaned:
                disk.remove(f"{directory}/{name}")
            else:
                swaps.append(name)
    if swaps:
        _put_in_place(disk, directory, files, swaps)
    disk.sync_directory(directory)
    return disk.list_directory(directory)


def _put_in_place(disk: Disk, directory: str, files: list[str], swaps: list[str]) -> None:
    """Remove what the replacements replace, and give them their names."""
    logs = [name for name in swaps if name.endswith(names.LOG + names.SWAP)]
    if logs:
        first = min(_offset(name) for name in logs)
        after = max(_next_offset(disk, directory, name) for name in logs)
        for name in files:
            offset = names.offset_of(name)
            replaced = offset is not None and first <= offset < after
            if replaced and name.endswith(names.SEGMENT_FILES):
                disk.remove(f"{directory}/{name}")
    # The log itself last: once it has its name, the segment counts as in place.
    for name in sorted(swaps, key=lambda name: name.endswith(names.LOG + names.SWAP)):
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(names.SWAP)}")


def _offset(name: str) -> int:
    offset = names.offset_of(name)
    assert offset is not None
    return offset


def _next_offset(disk: Disk, directory: str, name: str) -> int:
    """Where a replacement's records end."""
    next_offset = _offset(name)
    file = disk.open(f"{directory}/{name}")
    try:
        for _, header in headers_from(file, 0, file.size()):
            next_offset = header.next_offset
    except CorruptMessage:
        pass  # it is scanned like any other segment afterwards
    finally:
        file.close()
    return next_offset


def remove_segment(disk: Disk, segment: Segment) -> None:
    """Remove a segment's files at once; the log last, so that a stop in between leaves a segment without indexes."""
    segment.close()
    for suffix in reversed(names.SEGMENT_FILES):
        path = segment.file_path(suffix)
        if disk.exists(path):
            disk.remove(path)
