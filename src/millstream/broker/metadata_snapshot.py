"""Snapshot files: the metadata log's content up to an offset, as batches between a header and a footer.

    <end offset, 20 digits>-<epoch, 10 digits>.checkpoint      in __cluster_metadata-0
    bootstrap.checkpoint                                       beside it: the first records of a new cluster

The end offset is exclusive and the epoch is that of the record before it. Inside, offsets count from zero. The header's
batch also carries the voters of a dynamic quorum. A file without its footer was not finished and is not a snapshot: it
is written under `.part` and renamed when all of it is on disk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from millstream.broker.metadata_batches import (
    ControlMessage,
    control_batch,
    decode_batch,
    encode_values,
    metadata_batch,
    voter_messages,
)
from millstream.protocol.errors import CorruptMessage
from millstream.protocol.messages.data.kraft_version_record import KRaftVersionRecord
from millstream.protocol.messages.data.snapshot_footer_record import SnapshotFooterRecord
from millstream.protocol.messages.data.snapshot_header_record import SnapshotHeaderRecord
from millstream.protocol.messages.data.voters_record import VotersRecord
from millstream.quorum.voters import STATIC, VoterSet
from millstream.records.reading import each_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.metadata.record_types import MetadataRecord
    from millstream.runtime.ports import Disk

# Between batches the writer lets the event loop run, so they are short.
RECORDS_PER_BATCH_MAX = 500
CHECKPOINT = ".checkpoint"
PART = ".checkpoint.part"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)


class SnapshotId(NamedTuple):
    """Where a snapshot ends: the offset after its last record, and that record's epoch."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{CHECKPOINT}"


FIRST_SNAPSHOT = SnapshotId(0, 0)


@dataclass(slots=True)
class SnapshotContent:
    """What a snapshot file says."""

    timestamp_ms: int = 0
    kraft_version: int = STATIC
    voters: VoterSet | None = None
    records: list[MetadataRecord] = field(default_factory=list)


def list_snapshots(disk: Disk, directory: str) -> list[SnapshotId]:
    """The finished snapshots of a metadata log, oldest first."""
    found = (_NAME.fullmatch(name) for name in disk.list_directory(directory))
    return [SnapshotId(int(match[1]), int(match[2])) for match in found if match]


def snapshot_batches(
    records: Iterable[MetadataRecord],
    *,
    level: int,
    epoch: int,
    last_contained_ms: int,
    now_ms: int,
    voters: VoterSet | None,
) -> Iterator[bytearray]:
    """The batches of a snapshot file, one after the other. `voters` only where the quorum is dynamic."""
    header: list[ControlMessage] = [SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_contained_ms)]
    if voters is not None:
        header += voter_messages(voters)
    yield control_batch(header, base_offset=0, epoch=epoch, timestamp_ms=now_ms)
    offset = len(header)
    for values, _ in encode_values(records, level, records_max=RECORDS_PER_BATCH_MAX):
        yield metadata_batch(values, base_offset=offset, epoch=epoch, timestamp_ms=now_ms)
        offset += len(values)
    footer = SnapshotFooterRecord(version=0)
    yield control_batch([footer], base_offset=offset, epoch=epoch, timestamp_ms=now_ms)


def read_snapshot(content: bytes) -> SnapshotContent:
    """Decode a whole snapshot file; CorruptMessage if it is not one, or not finished."""
    snapshot = SnapshotContent()
    finished = started = False
    end = 0
    for position, header in each_batch(content):
        batch = decode_batch(content, position, header)
        snapshot.records += batch.records
        end = position + header.size
        for message in batch.control:
            if isinstance(message, SnapshotHeaderRecord):
                started, snapshot.timestamp_ms = True, message.last_contained_log_timestamp
            elif isinstance(message, KRaftVersionRecord):
                snapshot.kraft_version = message.k_raft_version
            elif isinstance(message, VotersRecord):
                snapshot.voters = VoterSet.from_record(message)
            elif isinstance(message, SnapshotFooterRecord):
                finished = True
            else:
                raise CorruptMessage(f"{type(message).__name__} in a snapshot")
    if not started or not finished or end != len(content):
        raise CorruptMessage("a snapshot without its header or footer")
    return snapshot
