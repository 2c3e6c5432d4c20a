"""Appending: a batch of bytes becomes the end of the log.

A leader checks the batch, gives it its base offset and its leader epoch, and writes it. The CRC covers neither, so
the first sixteen bytes are made anew and the rest goes from the receive buffer into the file with one writev, unseen
by Python. Only a topic that stamps LogAppendTime or stores another codec, or a producer that told a wrong timestamp,
costs a copy. (`following` writes what a leader sent, as it is.)

State changes after the write succeeded, and in an order that a failure at any point cannot turn into a second batch
at the same offset (KAFKA-7866): the end of the log moves first, then producers and the transaction index.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from millstream.log.batches import split
from millstream.log.producers import Origin
from millstream.log.rolling import must_roll, roll
from millstream.log.transactions import AbortedTransaction
from millstream.protocol.errors import CorruptMessage, RecordListTooLarge, RecordTooLarge
from millstream.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    LENGTH_END,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
    stamp_log_append_time,
    stamp_max_timestamp,
)
from millstream.records.building import ControlType
from millstream.records.reading import control_record
from millstream.records.rewriting import recompress
from millstream.records.validation import check_batch

if TYPE_CHECKING:
    from millstream.log.log import Log
    from millstream.log.producers import KnownBatch, ProducerStates
    from millstream.runtime.ports import Buffer

_PREFIX = Struct(">qii")
_PREFIX_BYTES = _PREFIX.size
# A batch up to this size is kept until the next: consumers and followers that wait for it are given it from memory.
NEWEST_BYTES_MAX = 4096


class Appended(NamedTuple):
    """Where a batch now is. `log_append_time` is -1 if it is new, and its records keep their producer's time."""

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool


def append_as_leader(
    log: Log, records: Buffer, leader_epoch: int, now_ms: int, *, origin: Origin, version_allows_zstd: bool
) -> Appended:
    """Append what a client, a coordinator or the quorum's leader wrote; offsets follow the end of the log."""
    if log.failure is not None or log.closed:
        raise log.offline_error()
    if origin is Origin.CLIENT:
        header = check_batch(records, 0, len(records), log.rules, now_ms, zstd=version_allows_zstd)
        if log.is_plain and header.max_timestamp == read_max_timestamp(records):
            return _append_batch(log, records, header, leader_epoch, now_ms)
        return _append_changed(log, records, header, leader_epoch, now_ms)
    # What coordinators and the quorum wrote is our own; it may be several batches.
    base_offset = log.end_offset
    appended = None
    for batch, header in split(records):
        appended = _append_changed(log, batch, header, leader_epoch, now_ms, from_client=False)
    if appended is None:
        raise CorruptMessage("there is no batch to append")
    return appended._replace(base_offset=base_offset)


_MAX_TIMESTAMP = Struct(">q")


def read_max_timestamp(records: Buffer) -> int:
    return int(_MAX_TIMESTAMP.unpack_from(records, 35)[0])


def _append_changed(
    log: Log, records: Buffer, header: BatchHeader, leader_epoch: int, now_ms: int, *, from_client: bool = True
) -> Appended:
    """The way of a batch whose bytes may have to change: another codec, the broker's time, the true max timestamp."""
    log_append_time = NO_TIMESTAMP
    control = header.attributes & CONTROL_BIT
    changed: bytearray | None = None
    codec = log.stored_codec
    if codec is not None and not control and header.attributes & CODEC_MASK != codec:
        config = log.config
        changed = recompress(records, 0, codec, config.compression_level, limits=config.decompression_limits)
        if len(changed) > config.max_message_bytes and from_client:
            raise RecordTooLarge(
                f"a batch of {len(changed)} bytes once stored as {codec.name.lower()}, "
                f"where max.message.bytes is {config.max_message_bytes}"
            )
    if log.config.log_append_time and not control:
        changed = bytearray(records) if changed is None else changed
        stamp_log_append_time(changed, 0, len(changed), now_ms)
        log_append_time = now_ms
    elif header.max_timestamp != read_max_timestamp(records if changed is None else changed):
        changed = bytearray(records) if changed is None else changed
        stamp_max_timestamp(changed, 0, len(changed), header.max_timestamp)
    if changed is not None:
        records, header = changed, read_header(changed)
    return _append_batch(
        log, records, header, leader_epoch, now_ms, log_append_time=log_append_time, from_client=from_client
    )


def _append_batch(
    log: Log,
    records: Buffer,
    header: BatchHeader,
    leader_epoch: int,
    now_ms: int,
    *,
    log_append_time: int = NO_TIMESTAMP,
    from_client: bool = True,
) -> Appended:
    size = len(records)
    if size > log.config.segment_bytes:
        raise RecordListTooLarge(f"a batch of {size} bytes, where segment.bytes is {log.config.segment_bytes}")
    last_offset_delta, max_timestamp, producer_id = header[6], header[8], header[9]
    if producer_id >= 0:
        known = _check_producer(log, records, header, from_client=from_client)
        if known is not None:
            # With its time, as Kafka does, also where records keep the time that their producer gave them.
            return Appended(known.base_offset, known.last_offset, known.timestamp, log.start_offset, duplicate=True)
    base_offset = log.end_offset
    last_offset = base_offset + last_offset_delta
    if must_roll(log, size, last_offset, max_timestamp, now_ms):
        roll(log, base_offset, now_ms)
    segment = log.active
    try:
        if leader_epoch > log.epochs.latest_epoch:
            log.epochs.assign(leader_epoch, base_offset)
        prefix = _PREFIX.pack(base_offset, size - LENGTH_END, leader_epoch)
        rest = memoryview(records)[_PREFIX_BYTES:]
        if size <= NEWEST_BYTES_MAX:
            newest = prefix + rest
            segment.file.append(newest)
        else:
            newest = b""
            segment.file.append(prefix, rest)
        segment.note(last_offset, max_timestamp, size, log.config)
        log.end_offset = last_offset + 1
        log.newest, log.newest_offset = newest, base_offset
        if producer_id >= 0:
            note_producer(log, header, base_offset, records, 0)
    except OSError as error:
        log.mark_offline(error)
        raise log.offline_error() from error
    return Appended(base_offset, last_offset, log_append_time, log.start_offset, duplicate=False)


def _check_producer(log: Log, records: Buffer, header: BatchHeader, *, from_client: bool) -> KnownBatch | None:
    """Refuse what a producer must not write now; return the batch that this one repeats."""
    producers = log.producers
    if header.attributes & CONTROL_BIT:
        marker = control_record(records)
        producers.check_marker(header.producer_id, header.producer_epoch, marker.coordinator_epoch)
        return None
    if from_client:
        known = producers.check(header.producer_id, header.producer_epoch, header.base_sequence, header.count)
        if known is not None:
            return known
    producers.check_transaction(header.producer_id, transactional=bool(header.attributes & TRANSACTIONAL_BIT))
    return None


def note_producer(log: Log, header: BatchHeader, base_offset: int, records: Buffer, position: int) -> None:
    """Take note of a producer's batch that is in the active segment, and of the transaction that a marker ended."""
    if not header.attributes & CONTROL_BIT:
        log.producers.apply(header, base_offset)
        return
    ended = end_transaction(log.producers, header, base_offset, records, position)
    if ended is not None:
        log.active.txn_index.append(ended)
        log.unsynced.wrote(log.active.txn_index.path, names_changed=True)


def end_transaction(
    producers: ProducerStates, header: BatchHeader, base_offset: int, records: Buffer, position: int
) -> AbortedTransaction | None:
    """Apply a marker; returns what the transaction index has to remember of it."""
    if header.count == 0:  # compaction took the marker and left the batch
        return None
    try:
        marker = control_record(records, position)
    except CorruptMessage:
        return None  # only a peer that lies writes this; it ends no transaction
    if marker.type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    completed = producers.apply_marker(
        header.producer_id,
        header.producer_epoch,
        marker.coordinator_epoch,
        base_offset,
        header.max_timestamp,
        commit=marker.type == ControlType.COMMIT,
    )
    if completed is None:
        return None
    stable_offset = producers.stable_offset_after(completed)
    producers.complete(completed)
    if not completed.aborted:
        return None
    return AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable_offset)
