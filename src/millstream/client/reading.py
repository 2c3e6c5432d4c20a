"""Records out of fetched batches: what a reader sees of a partition from an offset on.

Control batches are not shown, and neither are batches of aborted transactions when only committed records are wanted:
the broker lists those transactions by producer and first offset, and an abort marker in the log ends each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from millstream.client.errors import CorruptBatch
from millstream.protocol.errors import BrokerError, CorruptMessage
from millstream.records.batch import HEADER_BYTES, MAGIC, crc_of, read_header
from millstream.records.codecs import Limits
from millstream.records.reading import control_record, decode_records, each_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.client.fetch import Fetched
    from millstream.records.batch import BatchHeader, Record

ABORT = 0
# A reader takes what the broker took, however well it was compressed: only what no Arrow column could hold is refused.
READ_LIMITS: Final = Limits(bytes_max=(1 << 31) - 1, ratio_max=1 << 31)


class Batch(NamedTuple):
    """One data batch: its header and its records from the asked offset on."""

    header: BatchHeader
    records: list[Record]


def batches_from(fetched: Fetched, offset: int, *, read_committed: bool = False) -> Iterator[Batch]:
    """The batches with records from `offset` on."""
    reached = offset
    try:
        for position, header in visible_batches(fetched, offset, read_committed=read_committed):
            try:
                records = decode_records(fetched.batches, position, limits=READ_LIMITS)
            except BrokerError as error:
                raise corrupt(fetched, position, header, str(error)) from error
            if header.base_offset < offset:
                records = [record for record in records if record.offset >= offset]
            yield Batch(header, records)
            reached = header.next_offset
    except CorruptMessage as error:
        raise CorruptBatch(fetched.topic, fetched.partition, reached, str(error)) from error


def visible_batches(
    fetched: Fetched, offset: int, *, read_committed: bool = False
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of the batches whose records from `offset` on a reader is meant to see."""
    buffer = fetched.batches
    aborted = sorted(fetched.aborted, key=lambda transaction: transaction.first_offset)
    hidden: dict[int, bool] = {}
    for position, header in each_batch(buffer):
        if read_committed:
            while aborted and aborted[0].first_offset <= header.last_offset:
                hidden[aborted.pop(0).producer_id] = True
        if header.is_control:
            # Compaction may leave a marker's batch without the marker, for what it says of its producer.
            if read_committed and header.count and control_record(buffer, position).type == ABORT:
                hidden.pop(header.producer_id, None)
            continue
        if header.next_offset <= offset or (header.is_transactional and header.producer_id in hidden):
            continue
        yield position, header


def next_offset(fetched: Fetched, offset: int) -> int:
    """Where to read on: after the last whole batch, whatever was in it; before one that cannot be read.

    Where that one is the first there is no getting on, and it is an error.
    """
    reached = offset
    try:
        for _, header in each_batch(fetched.batches):
            reached = max(reached, header.next_offset)
    except CorruptMessage as error:
        if reached == offset:
            raise CorruptBatch(fetched.topic, fetched.partition, offset, str(error)) from error
    return reached


def corrupt(fetched: Fetched, position: int, header: BatchHeader, reason: str) -> CorruptBatch:
    """The error for a batch whose header was found at this position."""
    after = _behind(fetched, position, header)
    return CorruptBatch(fetched.topic, fetched.partition, header.base_offset, reason, next_offset=after)


def _behind(fetched: Fetched, position: int, header: BatchHeader) -> int | None:
    """Where to read on behind a damaged batch; None rather than an offset that may lie behind good records.

    The next batch knows best where this one ends, if the answer has that: the header is perhaps what is damaged. With
    a right CRC it is not. With a wrong one it is believed if its two counts agree, as they do before a compaction, and
    if it does not end where the partition has not got to yet.
    """
    behind = position + header.size
    if behind + HEADER_BYTES <= len(fetched.batches):
        found = read_header(fetched.batches, behind)
        if found.magic == MAGIC and header.base_offset < found.base_offset < fetched.high_watermark:
            return found.base_offset
    if crc_of(fetched.batches, position, header.size) == header.crc:
        return header.next_offset
    agreed = header.count == header.last_offset_delta + 1
    return header.next_offset if agreed and header.next_offset <= fetched.high_watermark else None
