"""Record batches of Arrow to record batches of Kafka.

A row's columns are seen as they lie in Arrow's memory (`Rows`); the native encoder reads them from there and writes
records straight behind the place of the batch's header. Only a codec makes another copy.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

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
    from millstream.client.produce import ProducerId

_NO_TIMESTAMP: Final = -1
_NO_INTS: Final = memoryview(array("i"))


class Column(NamedTuple):
    """A column of bytes, or of lists, as Arrow has it."""

    ends: memoryview = _NO_INTS
    data: memoryview = memoryview(b"")
    valid: memoryview = memoryview(b"")
    valid_at: int = 0


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
        headers, names_of, contents = _headers(batch.column(names.headers))
    return Rows(
        _times(batch, names.timestamp, now_ms),
        _bytes_column(batch, names.key),
        _bytes_column(batch, names.value),
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
        self._attributes = codec | (TRANSACTIONAL_BIT if transactional else 0)
        self._producer = (producer.id, producer.epoch) if producer is not None else (-1, -1)

    def give_back(self, batch: memoryview) -> None:
        """A batch that nobody needs any more; fresh memory costs more than the records that are put there."""
        whole = batch.obj
        if self._codec == Codec.NONE and isinstance(whole, bytearray) and len(whole) == self._room:
            self._spare.append(whole)

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
            self._spare.append(out)
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
            if len(out) == self._room:
                self._spare.append(out)
            return memoryview(compressed), after
        HEADER.pack_into(out, 0, *header)
        stamp_crc(out, 0, end)
        return batch, after


def _bytes_column(batch: pa.RecordBatch, name: str | None) -> Column:
    return Column() if name is None else bytes_column(batch.column(name), name)


def bytes_column(column: pa.Array, name: str) -> Column:
    """A column of bytes or text; one of another type has to be cast by whoever knows how."""
    column = plain(column)
    kind = column.type
    if pa.types.is_null(kind):
        return Column()
    if not _is_bytes(kind):
        raise TypeError(f"column {name!r} holds {kind}: a record needs bytes or text")
    column = column.cast(pa.binary())
    validity, ends, data = column.buffers()
    return Column(
        _ints(ends, column.offset, len(column) + 1),
        memoryview(data).cast("B") if data is not None else memoryview(b""),
        *_valid(column, validity),
    )


def plain(column: pa.Array) -> pa.Array:
    """What a dictionary or an extension stands for: Polars' categories, Arrow's own JSON ..."""
    if isinstance(column.type, pa.BaseExtensionType):
        return plain(column.storage)
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    # Arrow has no `take` for views, which Polars has in its dictionaries.
    return (values.cast(pa.binary()) if _is_bytes(values.type) else values).take(column.indices)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_string_view(kind)
    )


def _headers(column: pa.Array) -> tuple[Column, Column, Column]:
    kind = column.type
    if pa.types.is_null(kind):
        return Column(), Column(), Column()
    if pa.types.is_large_list(kind) or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        column = column.cast(pa.list_(kind.value_type))
    if pa.types.is_map(column.type):
        names, contents = column.keys, column.items
    elif pa.types.is_list(column.type) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2:
        names, contents = column.values.flatten()
        if kind.value_type.field(0).name == "value" and kind.value_type.field(1).name == "key":
            names, contents = contents, names
    else:
        raise TypeError(f"headers are a list of (key, value) structs or a map, not {kind}")
    if names.null_count:
        raise ValueError("a header has no key")
    validity, ends = column.buffers()[:2]
    lists = Column(_ints(ends, column.offset, len(column) + 1), memoryview(b""), *_valid(column, validity))
    return lists, bytes_column(names, "headers"), bytes_column(contents, "headers")


def _times(batch: pa.RecordBatch, name: str | None, now_ms: int) -> memoryview:
    """Milliseconds since 1970 for each row; now where there is none, which Kafka calls -1."""
    if name is None or pa.types.is_null(batch.column(name).type):
        return memoryview(array("q", [now_ms]) * batch.num_rows)
    import pyarrow.compute as pc

    column = batch.column(name)
    if pa.types.is_timestamp(column.type):
        # Finer units are cut: Kafka has milliseconds.
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    elif not pa.types.is_integer(column.type):
        raise TypeError(f"column {name!r} holds {column.type}: a record's time is a timestamp, or milliseconds")
    column = column.cast(pa.int64())
    if column.null_count:
        column = column.fill_null(now_ms)
    data = memoryview(column.buffers()[1]).cast("B")[8 * column.offset : 8 * (column.offset + len(column))]
    if pc.min(column).as_py() != _NO_TIMESTAMP:
        return data.cast("q")
    return memoryview(array("q", [now_ms if time == _NO_TIMESTAMP else time for time in data.cast("q")]))


def _ints(buffer: pa.Buffer | None, offset: int, count: int) -> memoryview:
    if buffer is None or buffer.size == 0:
        # Arrow leaves the ends of no values out.
        return memoryview(array("i", bytes(4 * count)))
    return memoryview(buffer).cast("B")[4 * offset : 4 * (offset + count)].cast("i")


def _valid(column: pa.Array, validity: pa.Buffer | None) -> tuple[memoryview, int]:
    if validity is None or column.null_count == 0:
        return memoryview(b""), 0
    return memoryview(validity).cast("B"), column.offset
