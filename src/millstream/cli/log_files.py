"""Every kind of file in a log directory, as entries that can be read: one dictionary each.

Which kind it is, its name says; how records are decoded, its folder. Nothing is opened for writing. What is broken is
an entry with `error`, and the rest of the file is not believed.
"""

from __future__ import annotations

import os
from importlib import import_module
from struct import Struct
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.log import snapshots
from millstream.protocol import apis, codec
from millstream.protocol.coordinator_frame import decode_coordinator_key, decode_coordinator_value
from millstream.protocol.errors import BrokerError, MalformedMessage, UnknownRecordType, UnsupportedVersion
from millstream.protocol.metadata_frame import decode_metadata_record
from millstream.protocol.uuid import Uuid
from millstream.records.batch import crc_of
from millstream.records.building import ControlType
from millstream.records.codecs import Codec
from millstream.records.reading import decode_records, each_batch
from millstream.runtime.real import RealDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.records.batch import BatchHeader, Record

Entry = dict[str, Any]

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")
ABORTED_ENTRY = Struct(">hqqqq")
METADATA_TOPIC = "__cluster_metadata"
COORDINATOR_LOGS: dict[str, apis.CoordinatorLog] = {
    "__consumer_offsets": "groups",
    "__transaction_state": "transactions",
    "__share_group_state": "share_state",
}
TEXT_FILES = (
    "leader-epoch-checkpoint",
    "partition.metadata",
    "meta.properties",
    "quorum-state",
    ".kafka_cleanshutdown",
)


def files_in(path: str) -> list[str]:
    """The files of a directory and of the partitions in it that `entries` understands, by name."""
    if not os.path.isdir(path):
        return [path]
    return [
        file
        for name in sorted(os.listdir(path))
        for file in files_in(os.path.join(path, name))
        if reader_of(file) is not None
    ]


def reader_of(path: str) -> Callable[[str], Iterator[Entry]] | None:
    """The function that reads this kind of file."""
    name = os.path.basename(path)
    # A file that is marked for deletion or that compaction has written is of the kind that its first suffix says.
    for mark in (".deleted", ".cleaned", ".swap"):
        name = name.removesuffix(mark)
    if name.endswith("-offset-checkpoint") or name in TEXT_FILES:
        return _text
    suffixes = {
        ".log": _batches,
        ".checkpoint": _batches,
        ".index": _offset_index,
        ".timeindex": _time_index,
        ".snapshot": _producers,
        ".txnindex": _aborted,
    }
    return suffixes.get(os.path.splitext(name)[1])


def _base_offset(path: str) -> int:
    digits = os.path.basename(path).partition(".")[0]
    return int(digits) if digits.isdecimal() else 0


def _topic(path: str) -> str:
    return os.path.basename(os.path.dirname(os.path.abspath(path))).rpartition("-")[0]


def _read(path: str) -> bytes:
    return RealDisk().read_file(path)


def _text(path: str) -> Iterator[Entry]:
    for line in _read(path).decode(errors="replace").splitlines():
        yield {"line": line}


def _offset_index(path: str) -> Iterator[Entry]:
    base, content = _base_offset(path), _read(path)
    for offset, position in _whole(OFFSET_ENTRY, content):
        # Zeros are space that an active segment has reserved: no entry points at the first batch.
        if offset == position == 0:
            return
        yield {"offset": base + offset, "position": position}


def _time_index(path: str) -> Iterator[Entry]:
    base, content = _base_offset(path), _read(path)
    for timestamp, offset in _whole(TIME_ENTRY, content):
        if timestamp == offset == 0:
            return
        yield {"timestamp": timestamp, "offset": base + offset}


def _aborted(path: str) -> Iterator[Entry]:
    for _, producer_id, first, last, stable in _whole(ABORTED_ENTRY, _read(path)):
        yield {"producer_id": producer_id, "first_offset": first, "last_offset": last, "last_stable_offset": stable}


def _whole(layout: Struct, content: bytes) -> Iterator[tuple[int, ...]]:
    return layout.iter_unpack(content[: len(content) - len(content) % layout.size])


def _producers(path: str) -> Iterator[Entry]:
    try:
        for entry in snapshots.decode(_read(path)):
            yield entry._asdict()
    except snapshots.CorruptSnapshot as error:
        yield {"error": str(error)}


def _batches(path: str) -> Iterator[Entry]:
    """Each batch, and below it each record."""
    topic = METADATA_TOPIC if path.endswith(".checkpoint") else _topic(path)
    file = RealDisk().open(path)
    view = file.view()
    end = 0
    try:
        for position, header in each_batch(view):
            end = position + header.size
            yield _batch(header, position, valid=crc_of(view, position, header.size) == header.crc)
            for record in decode_records(view, position):
                yield _control(record) if header.is_control else _record(topic, record)
        if end < len(view):
            yield {"error": f"{len(view) - end} bytes at position {end} are not a whole batch"}
    except BrokerError as error:
        yield {"error": f"at position {end}: {error}"}
    finally:
        view.release()
        file.close()


def _batch(header: BatchHeader, position: int, *, valid: bool) -> Entry:
    return {
        "batch": True,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.count,
        "position": position,
        "size": header.size,
        "leader_epoch": header.leader_epoch,
        "codec": Codec(header.codec).name.lower() if header.codec in tuple(Codec) else header.codec,
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon_ms": header.delete_horizon_ms,
        "crc": header.crc,
        "valid": valid,
    }


CONTROL_MESSAGES = {
    ControlType.ABORT: "end_txn_marker.EndTxnMarker",
    ControlType.COMMIT: "end_txn_marker.EndTxnMarker",
    ControlType.LEADER_CHANGE: "leader_change_message.LeaderChangeMessage",
    ControlType.SNAPSHOT_HEADER: "snapshot_header_record.SnapshotHeaderRecord",
    ControlType.SNAPSHOT_FOOTER: "snapshot_footer_record.SnapshotFooterRecord",
    ControlType.KRAFT_VERSION: "kraft_version_record.KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "voters_record.VotersRecord",
}


def _control(record: Record) -> Entry:
    """A control record's key is two int16: a version, and what it is."""
    number = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    entry: Entry = {"record": True, "control": True, "offset": record.offset, "timestamp": record.timestamp}
    value = record.value or b""
    if number not in CONTROL_MESSAGES:
        return entry | {"type": number, "value": plain(value)}
    kind = ControlType(number)
    module, _, name = CONTROL_MESSAGES[kind].partition(".")
    message = getattr(import_module(f"millstream.protocol.messages.data.{module}"), name)
    # The markers have their version in front, the others as their first field.
    version = int.from_bytes(value[:2], "big", signed=True)
    start = 2 if kind in (ControlType.ABORT, ControlType.COMMIT) else 0
    try:
        return entry | {"type": kind.name, "value": plain(codec.decode(message, version, value, start))}
    except (MalformedMessage, UnsupportedVersion) as error:
        return entry | {"type": kind.name, "value": plain(value), "error": str(error)}


def _record(topic: str, record: Record) -> Entry:
    entry: Entry = {"record": True, "offset": record.offset, "timestamp": record.timestamp}
    try:
        if topic == METADATA_TOPIC and record.value is not None:
            message, version = decode_metadata_record(record.value)
            return entry | {"type": type(message).__name__, "version": version, "value": plain(message)}
        if topic in COORDINATOR_LOGS and record.key is not None:
            log = COORDINATOR_LOGS[topic]
            key = decode_coordinator_key(log, record.key)
            value = None if record.value is None else decode_coordinator_value(log, key, record.value)[0]
            return entry | {"type": type(key).__name__, "key": plain(key), "value": plain(value)}
    except (MalformedMessage, UnknownRecordType) as error:
        entry["error"] = str(error)
    headers = [{"name": name, "value": plain(value)} for name, value in record.headers]
    return entry | {"key": plain(record.key), "value": plain(record.value), "headers": headers}


def plain(value: Any) -> Any:
    """A message as dictionaries, lists and text; bytes that are no text as base64."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        content = bytes(value)
        try:
            return content.decode()
        except UnicodeDecodeError:
            from base64 import b64encode

            return {"base64": b64encode(content).decode()}
    return value
