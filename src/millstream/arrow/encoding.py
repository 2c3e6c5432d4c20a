"""Record batches of Arrow to record batches of Kafka.

A row's columns are seen as they lie in Arrow's memory (`Rows`); the native encoder reads them from there and writes
records straight behind the place of the batch's header. Another copy is made only by a codec, and of a batch that would
leave most of its buffer empty for as long as it is under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from millstream.arrow.columns import Column, bytes_column, header_columns, times_of
from millstream.records import _scatter
from millstream.records.batch import (
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    NO_LEADER_EPOCH,
    TRANSACTIONAL_BIT,
    BatchHeader,
    stamp_crc,
)
from millstream.records.building import assemble
from millstream.records.codecs import Codec, compress

if TYPE_CHECKING:
    import pyarrow as pa

    from millstream.client.produce import ProducerId

__all__ = ["Column", "Encoder", "Names", "Rows", "bytes_column", "fitting", "rows_of"]

# Of buffers that wait for their next batch; as much as can be under way at once.
SPARE_BYTES_MAX: Final = 10_000_000


class Rows(NamedTuple):
    """What becomes of a record batch's rows."""

    times: memoryview
    key: Column
    value: Column
    headers: Column
    names: Column
    contents: Column


class Names(NamedTuple):
    """The columns that hold a record's parts; None for a part that the records don't have."""

    key: str | None
    value: str | None
    headers: str | None
    timestamp: str | None


def rows_of(batch: pa.RecordBatch, names: Names, now_ms: int) -> Rows:
    """The columns of a batch, ready for the encoder."""
    headers = names_of = contents = Column()
    if names.headers is not None:
        headers, names_of, contents = header_columns(batch.column(names.headers), names.headers)
    return Rows(
        times_of(batch, names.timestamp, now_ms),
        Column() if names.key is None else bytes_column(batch.column(names.key), names.key),
        Column() if names.value is None else bytes_column(batch.column(names.value), names.value),
        headers,
        names_of,
        contents,
    )


def fitting(bytes_max: int, batch_bytes: int, codec: Codec) -> int:
    """How many bytes of records may go into a batch that must not become larger than `bytes_max`.

    What cannot be compressed grows a little: the codecs add some bytes to every block, and a frame around all.
    """
    room = bytes_max - HEADER_BYTES
    if codec != Codec.NONE:
        room -= room // 64 + 128
    return max(1, min(batch_bytes, room))


class Encoder:
    """Makes batches of one kind."""

    def __init__(self, codec: Codec, batch_bytes: int, producer: ProducerId | None, *, transactional: bool) -> None:
        self._codec = codec
        self._room = HEADER_BYTES + batch_bytes
        self._spare: list[bytearray] = []
        self._spare_max = max(1, SPARE_BYTES_MAX // self._room)
        self._attributes = codec | (TRANSACTIONAL_BIT if transactional else 0)
        self._producer = (producer.id, producer.epoch) if producer is not None else (-1, -1)

    def give_back(self, batch: memoryview) -> None:
        """A batch that nobody needs any more; fresh memory costs more than the records that are put there."""
        whole = batch.obj
        if self._codec == Codec.NONE and isinstance(whole, bytearray):
            self._spare_again(whole)

    def _spare_again(self, out: bytearray) -> None:
        if len(out) == self._room and len(self._spare) < self._spare_max:
            self._spare.append(out)

    def encode(self, rows: Rows, order: memoryview, at: int, stop: int, sequence: int) -> tuple[memoryview, int]:
        """(batch, the first row that is not in it): as many of order[at:stop] as one batch takes, at least one."""
        out = self._spare.pop() if self._spare else bytearray(self._room)
        records = (rows.times, *rows.key, *rows.value)
        columns = (*records, rows.headers.ends, *rows.headers[2:], *rows.names[:2], *rows.contents)
        after, end, base_timestamp, max_timestamp = _scatter.encode(
            order, at, stop, *columns, memoryview(out), HEADER_BYTES
        )
        if after == at:
            # A record that is larger than a batch is meant to be gets one to itself.
            self._spare_again(out)
            out = bytearray(end)
            after, end, base_timestamp, max_timestamp = _scatter.encode(
                order, at, at + 1, *columns, memoryview(out), HEADER_BYTES
            )
        header = BatchHeader(
            base_offset=0,
            batch_length=end - LENGTH_END,
            leader_epoch=NO_LEADER_EPOCH,
            magic=MAGIC,
            crc=0,
            attributes=self._attributes,
            last_offset_delta=after - at - 1,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence if self._producer[0] >= 0 else -1,
            count=after - at,
        )
        batch = memoryview(out)[:end]
        if self._codec != Codec.NONE:
            compressed = assemble(header, compress(self._codec, batch[HEADER_BYTES:]))
            self._spare_again(out)
            return memoryview(compressed), after
        if 2 * end < len(out):
            # A few rows for one of a thousand partitions must not hold room for a megabyte until they have arrived.
            small = out[:end]
            self._spare_again(out)
            out, batch = small, memoryview(small)
        HEADER.pack_into(out, 0, *header)
        stamp_crc(out, 0, end)
        return batch, after
