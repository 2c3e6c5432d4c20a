"""From files to state: the newest snapshot, then the log behind it, give the image and the voters.

Two readers share this. The node itself replays what its opened log holds (recovered, so every batch is whole). And
tools that only want to know what a directory contains (`millstream kafka-properties`, the check for access rules before
a start) read the same files without opening, locking or repairing anything; they stop at the first torn batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from millstream.broker.metadata_batches import decode_batch
from millstream.broker.metadata_snapshot import FIRST_SNAPSHOT, SnapshotId, list_snapshots, read_snapshot
from millstream.log import names
from millstream.metadata.delta import NO_CHANGES, Changes, Delta, apply
from millstream.metadata.image import EMPTY_IMAGE, MetadataImage
from millstream.protocol.errors import CorruptMessage
from millstream.protocol.messages.data.kraft_version_record import KRaftVersionRecord
from millstream.protocol.messages.data.voters_record import VotersRecord
from millstream.quorum.voters import STATIC, VoterSet
from millstream.records.batch import crc_of, read_header
from millstream.records.reading import each_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from millstream.broker.metadata_batches import ControlMessage
    from millstream.log.log import Log
    from millstream.runtime.ports import Disk, File

METADATA_DIRECTORY = "__cluster_metadata-0"
_CHUNK_BYTES = 1 << 20


class ControlAt(NamedTuple):
    """A control record of the log."""

    offset: int
    message: ControlMessage


@dataclass(frozen=True, slots=True)
class ReplayedMetadata:
    """What the files say.

    `voters` is None in a static quorum. `voters_logged` is whether they stand in the log or a snapshot of it, and not
    only in the first snapshot, which formatting wrote. `bytes_since_snapshot` is what was replayed from the log,
    `changes` what that did to the image, and `control` the records about voters among it: not all of it need be
    committed. `snapshot_image`, `snapshot_voters` and `snapshot_kraft_version` are as the snapshot alone says.
    """

    image: MetadataImage
    kraft_version: int = STATIC
    voters: VoterSet | None = None
    voters_logged: bool = False
    snapshot: SnapshotId | None = None
    bytes_since_snapshot: int = 0
    changes: Changes = NO_CHANGES
    control: tuple[ControlAt, ...] = ()
    snapshot_image: MetadataImage = EMPTY_IMAGE
    snapshot_voters: VoterSet | None = None
    snapshot_kraft_version: int = STATIC


def replay_snapshot(disk: Disk, directory: str) -> ReplayedMetadata:
    """The newest snapshot of the metadata log in `directory`; an empty image where there is none."""
    snapshots = list_snapshots(disk, directory)
    if not snapshots:
        return ReplayedMetadata(EMPTY_IMAGE)
    newest = snapshots[-1]
    path = f"{directory}/{newest.file_name}"
    try:
        content = read_snapshot(disk.read_file(path))
    except CorruptMessage as error:
        raise CorruptMessage(f"{path}: {error}") from error
    image, _ = apply(
        EMPTY_IMAGE,
        content.records,
        offset=newest.end_offset - 1,
        epoch=newest.epoch,
        timestamp_ms=content.timestamp_ms,
    )
    return ReplayedMetadata(
        image=image,
        kraft_version=content.kraft_version,
        voters=content.voters,
        voters_logged=content.voters is not None and newest != FIRST_SNAPSHOT,
        snapshot=newest,
        snapshot_image=image,
        snapshot_voters=content.voters,
        snapshot_kraft_version=content.kraft_version,
    )


def replay_log(start: ReplayedMetadata, log: Log, upto_offset: int | None = None) -> ReplayedMetadata:
    """Everything that an open log holds behind the image of `start`; up to an offset where a batch ends."""
    end_offset = log.end_offset if upto_offset is None else upto_offset

    def next_chunk(offset: int) -> bytes | None:
        if offset >= end_offset:
            return None
        chunk = log.read(offset, _CHUNK_BYTES, end_offset, at_least_one_batch=True)
        if not chunk:
            raise CorruptMessage(f"the metadata log holds nothing at offset {offset}")
        return chunk

    return _replay_batches(start, next_chunk)


def read_metadata(disk: Disk, directory: str) -> ReplayedMetadata:
    """What the metadata log in `directory` holds, read without touching anything."""
    start = replay_snapshot(disk, directory)
    chunks = _chunks_of_files(disk, directory)
    return _replay_batches(start, lambda _: next(chunks, None))


def _replay_batches(start: ReplayedMetadata, next_chunk: Callable[[int], bytes | None]) -> ReplayedMetadata:
    """Replay whole batches; `next_chunk(offset)` gives those from `offset` on, None at the end."""
    delta = Delta(start.image)
    state = start
    offset, epoch, timestamp_ms = start.image.offset, start.image.epoch, start.image.timestamp_ms
    size = 0
    control: list[ControlAt] = []
    while (chunk := next_chunk(offset + 1)) is not None:
        for position, header in each_batch(chunk):
            if header.last_offset <= start.image.offset:
                continue
            batch = decode_batch(chunk, position, header)
            for record in batch.records:
                delta.replay(record)
            if batch.control:
                state = _note_control(state, batch.control)
                control += (ControlAt(header.base_offset + at, message) for at, message in enumerate(batch.control))
            offset, epoch, timestamp_ms = header.last_offset, header.leader_epoch, header.max_timestamp
            size += header.size
    image, changes = delta.finish(offset, epoch, timestamp_ms)
    return replace(state, image=image, bytes_since_snapshot=size, changes=changes, control=tuple(control))


def _note_control(state: ReplayedMetadata, messages: Iterable[ControlMessage]) -> ReplayedMetadata:
    for message in messages:
        if isinstance(message, KRaftVersionRecord):
            state = replace(state, kraft_version=message.k_raft_version)
        elif isinstance(message, VotersRecord):
            state = replace(state, voters=VoterSet.from_record(message), voters_logged=True)
    return state


def control_records(records: bytes | memoryview) -> list[ControlAt]:
    """The control records among whole batches, with their offsets."""
    found = []
    for position, header in each_batch(records):
        if header.is_control:
            messages = decode_batch(records, position, header).control
            found += [ControlAt(header.base_offset + at, message) for at, message in enumerate(messages)]
    return found


def _chunks_of_files(disk: Disk, directory: str) -> Iterator[bytes]:
    for name in disk.list_directory(directory):
        if name.endswith(names.LOG) and names.offset_of(name) is not None:
            file = disk.open(f"{directory}/{name}")
            try:
                yield from _whole_batches(file)
            finally:
                file.close()


def _whole_batches(file: File) -> Iterator[bytes]:
    """The file's content in chunks that end where a batch ends, up to the first batch that is not whole."""
    position, wanted = 0, _CHUNK_BYTES
    while True:
        chunk = file.read(position, wanted)
        end = 0
        try:
            for at, header in each_batch(chunk):
                if crc_of(chunk, at, header.size) != header.crc:
                    break
                end = at + header.size
        except CorruptMessage:
            pass
        if end:
            yield chunk[:end]
            position, wanted = position + end, _CHUNK_BYTES
        elif len(chunk) == wanted and read_header(chunk).size > wanted:
            wanted = read_header(chunk).size
        else:
            return
