"""Batches of the metadata log and of its snapshots: metadata records in frames, and the control records of the quorum.

Apache Kafka's raft writes them uncompressed, without a producer, all records of a batch at one time, keys only on
control records. A batch holds at most 8 MiB, which is also the most that a follower fetches at once.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from millstream.metadata.metadata_version import record_version
from millstream.protocol import codec
from millstream.protocol.errors import CorruptMessage
from millstream.protocol.messages.data.kraft_version_record import KRaftVersionRecord
from millstream.protocol.messages.data.leader_change_message import LeaderChangeMessage, Voter
from millstream.protocol.messages.data.snapshot_footer_record import SnapshotFooterRecord
from millstream.protocol.messages.data.snapshot_header_record import SnapshotHeaderRecord
from millstream.protocol.messages.data.voters_record import VotersRecord
from millstream.protocol.metadata_frame import decode_metadata_record, encode_metadata_record
from millstream.quorum.voters import DYNAMIC, VoterSet
from millstream.records.building import ControlType, encode_batch
from millstream.records.reading import decode_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.metadata.record_types import MetadataRecord
    from millstream.records.batch import BatchHeader

BATCH_BYTES_MAX = 8 << 20
RECORDS_PER_BATCH_MAX = 10_000
# What a record costs at most besides its value: length, attributes, deltas, key length, header count.
_RECORD_OVERHEAD = 24
_CONTROL_KEY = Struct(">hh")

ControlMessage = LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord

_CONTROL_TYPES: dict[type[ControlMessage], ControlType] = {
    LeaderChangeMessage: ControlType.LEADER_CHANGE,
    SnapshotHeaderRecord: ControlType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlType.SNAPSHOT_FOOTER,
    KRaftVersionRecord: ControlType.KRAFT_VERSION,
    VotersRecord: ControlType.KRAFT_VOTERS,
}
_CONTROL_KINDS = {number: kind for kind, number in _CONTROL_TYPES.items()}


class Values(NamedTuple):
    """Encoded records that go into one batch."""

    values: list[bytes]
    size: int


def encode_values(
    records: Iterable[MetadataRecord], level: int, *, records_max: int = RECORDS_PER_BATCH_MAX
) -> Iterator[Values]:
    """Frame the records at the versions of `level`, in groups that fit into a batch each."""
    values: list[bytes] = []
    size = 0
    for record in records:
        value = encode_metadata_record(record, record_version(record, level))
        if values and (size + len(value) + _RECORD_OVERHEAD > BATCH_BYTES_MAX or len(values) == records_max):
            yield Values(values, size)
            values, size = [], 0
        values.append(value)
        size += len(value) + _RECORD_OVERHEAD
    if values:
        yield Values(values, size)


def metadata_batch(values: list[bytes], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytearray:
    return encode_batch(
        [(None, value, (), timestamp_ms) for value in values], base_offset=base_offset, leader_epoch=epoch
    )


def control_batch(messages: Iterable[ControlMessage], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytearray:
    """Control records stand together in one batch, as Kafka writes them."""
    return encode_batch(
        [
            (_CONTROL_KEY.pack(0, _CONTROL_TYPES[type(message)]), codec.encode(message, 0), (), timestamp_ms)
            for message in messages
        ],
        base_offset=base_offset,
        leader_epoch=epoch,
        control=True,
    )


def leader_change(leader_id: int, voter_ids: Iterable[int], granting_ids: Iterable[int]) -> LeaderChangeMessage:
    return LeaderChangeMessage(
        version=0,
        leader_id=leader_id,
        voters=[Voter(voter_id=voter_id) for voter_id in voter_ids],
        granting_voters=[Voter(voter_id=voter_id) for voter_id in granting_ids],
    )


def voter_messages(voters: VoterSet) -> list[ControlMessage]:
    """The two records that a dynamic quorum's voters stand in."""
    return [KRaftVersionRecord(version=0, k_raft_version=DYNAMIC), voters.to_record()]


class Batch(NamedTuple):
    """A batch of the metadata log as its reader wants it: either metadata records or control messages."""

    header: BatchHeader
    records: list[MetadataRecord]
    control: list[ControlMessage]


def decode_batch(buffer: bytes | memoryview, position: int, header: BatchHeader) -> Batch:
    """Decode the batch at `position`; what is not a metadata batch raises CorruptMessage or MalformedMessage."""
    found = decode_records(buffer, position, check_crc=True)
    if not header.is_control:
        return Batch(header, [decode_metadata_record(record.value or b"")[0] for record in found], [])
    messages: list[ControlMessage] = []
    for record in found:
        if record.key is None or len(record.key) < _CONTROL_KEY.size:
            raise CorruptMessage(f"a control record without a type at offset {record.offset}")
        kind = _CONTROL_KINDS.get(ControlType(_CONTROL_KEY.unpack_from(record.key)[1]))
        if kind is None:
            raise CorruptMessage(f"a control record of transactions in the metadata log at offset {record.offset}")
        value = record.value or b""
        # Each of these messages begins with its own version.
        version = int.from_bytes(value[:2], "big", signed=True)
        messages.append(codec.decode(kind, version, value))
    return Batch(header, [], messages)
