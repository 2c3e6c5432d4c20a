"""Fetched batches to Arrow record batches: a few native calls for a whole answer, and no object per record.

The batches of a partition's answer are sorted into runs, each in one buffer: uncompressed ones lie in the answer itself
and form one run, a compressed one has a buffer of its own. All runs of a chunk are measured, then filled into buffers
of just the size that is needed. A chunk ends when it has grown to `CHUNK_BYTES`, so that a small answer that
decompresses to a lot does not become one huge batch, and where the topic's kind of timestamp changes.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from millstream.arrow.constants import Constants
from millstream.arrow.headers import header_array
from millstream.client.errors import CorruptBatch
from millstream.client.reading import READ_LIMITS, corrupt, visible_batches
from millstream.protocol.errors import BrokerError, CorruptMessage
from millstream.records import _columns, _walker
from millstream.records.batch import HEADER_BYTES, crc_of
from millstream.records.codecs import Codec, decompress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.client.fetch import Fetched
    from millstream.records.batch import BatchHeader

    Buffer = bytes | bytearray | memoryview

CHUNK_BYTES: Final = 64 * 1024 * 1024
_NO_BYTES: Final = memoryview(bytearray())
_NO_INTS: Final = memoryview(bytearray()).cast("i")
_NO_LONGS: Final = memoryview(bytearray()).cast("q")


class Decoder:
    """Turns what partitions answer into record batches of one schema."""

    def __init__(self, schema: pa.Schema, *, read_committed: bool, check_crcs: bool = True) -> None:
        self.schema = schema
        self._read_committed = read_committed
        self._check_crcs = check_crcs
        self._constants = Constants()

    def decode(self, fetched: Fetched, start: int, end: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The records with offsets in [start, end), those of control batches and aborted transactions left out.

        With each record batch comes the offset to read on from after it.
        """
        chunk = _Chunk(fetched, start, end)
        broken: CorruptBatch | None = None
        offset = start
        try:
            for position, header in visible_batches(fetched, start, read_committed=self._read_committed):
                offset = header.base_offset
                if offset >= end:
                    break
                if chunk.bytes >= CHUNK_BYTES or chunk.log_append_time != header.is_log_append_time:
                    yield from chunk.batches(self.schema, self._constants, offset)
                    chunk = _Chunk(fetched, start, end)
                if self._check_crcs and crc_of(fetched.batches, position, header.size) != header.crc:
                    broken = corrupt(fetched, position, header, "the CRC of the batch is wrong")
                    break
                try:
                    chunk.add(position, header)
                except BrokerError as error:
                    broken = corrupt(fetched, position, header, str(error))
                    break
                offset = header.next_offset
        except CorruptMessage as error:
            broken = CorruptBatch(fetched.topic, fetched.partition, offset, str(error))
        # What lies before the one that cannot be read is handed out first.
        after = min(end, chunk.next_offset if broken is None else broken.offset)
        yield from chunk.batches(self.schema, self._constants, after)
        if broken is not None:
            raise broken


class _Chunk:
    """Batches that become one record batch."""

    def __init__(self, fetched: Fetched, low: int, high: int) -> None:
        self.bytes = 0
        self.next_offset = low
        self.log_append_time: bool | None = None
        self._fetched = fetched
        self._low, self._high = low, high
        self._runs: list[tuple[Buffer, array[int]]] = []

    def add(self, position: int, header: BatchHeader) -> None:
        answer = self._fetched.batches
        start, limit = position + HEADER_BYTES, position + header.size
        append_time = header.max_timestamp if header.is_log_append_time else -1
        self.log_append_time = header.is_log_append_time
        self.next_offset = header.next_offset
        if header.codec == Codec.NONE:
            if not self._runs or self._runs[-1][0] is not answer:
                self._runs.append((answer, array("q")))
            self.bytes += limit - start
        else:
            payload = decompress(header.codec, answer[start:limit], READ_LIMITS)
            self._runs.append((payload, array("q")))
            self.bytes += len(payload)
            start, limit = 0, len(payload)
        plan = self._runs[-1][1]
        plan.extend((start, limit, header.count, header.base_offset, header.base_timestamp, append_time))

    def batches(self, schema: pa.Schema, constants: Constants, after: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """One record batch and where to read on, or none if all records lie outside of the range.

        If there is one whose records are broken, those before it come first, and then the error.
        """
        sizes = [0] * 10
        for number, (data, plan) in enumerate(self._runs):
            code, batch, *measured, record = _columns.measure(data, memoryview(plan), self._low, self._high)
            if code != _columns.OK:
                broken = self._broken(number, batch, str(_walker.BrokenRecords(code, record)))
                yield from self._before(number, batch).batches(schema, constants, broken.offset)
                raise broken
            sizes = [before + more for before, more in zip(sizes, measured, strict=True)]
        if sizes[0] > 0:
            yield self._filled(schema, constants, sizes), after

    def _before(self, run: int, batch: int) -> _Chunk:
        """Only the batches before this one."""
        before = _Chunk(self._fetched, self._low, self._high)
        data, plan = self._runs[run]
        kept = plan[: _columns.PLAN_FIELDS * batch]
        before._runs = [*self._runs[:run], *([(data, kept)] if kept else [])]
        before.log_append_time = self.log_append_time
        return before

    def _broken(self, run: int, batch: int, reason: str) -> CorruptBatch:
        first_offsets = [plan[at] for _, plan in self._runs for at in range(3, len(plan), _columns.PLAN_FIELDS)]
        at = sum(len(plan) // _columns.PLAN_FIELDS for _, plan in self._runs[:run]) + batch
        behind = first_offsets[at + 1] if at + 1 < len(first_offsets) else self.next_offset
        return CorruptBatch(self._fetched.topic, self._fetched.partition, first_offsets[at], reason, next_offset=behind)

    def _filled(self, schema: pa.Schema, constants: Constants, sizes: list[int]) -> pa.RecordBatch:
        rows, key_bytes, null_keys, value_bytes, null_values, with_headers, headers, *header_sizes = sizes
        name_bytes, content_bytes, null_contents = header_sizes
        wanted = schema.names
        offsets = ColumnOfNumbers(rows, wanted="offset" in wanted)
        times = ColumnOfNumbers(rows, wanted="timestamp" in wanted)
        keys = ColumnOfBytes(rows, key_bytes, null_keys, wanted="key" in wanted)
        values = ColumnOfBytes(rows, value_bytes, null_values, wanted="value" in wanted)
        has_headers = "headers" in wanted and with_headers > 0
        lists = ColumnOfBytes(rows, 0, rows - with_headers, wanted=has_headers, always_marked=True)
        names = ColumnOfBytes(headers, name_bytes, 0, wanted=has_headers)
        contents = ColumnOfBytes(headers, content_bytes, null_contents, wanted=has_headers, always_marked=True)
        places = (offsets.view, times.view, *keys.views, *values.views, lists.views[0], lists.views[2])
        views = (*places, *names.views[:2], *contents.views)
        at = (0, 0, 0, 0, 0, 0)
        for data, plan in self._runs:
            at = _columns.fill(data, memoryview(plan), self._low, self._high, *at, *views)
        arrays = {
            "key": lambda: keys.array(pa.binary()),
            "value": lambda: values.array(pa.binary()),
            "topic": lambda: constants.text(self._fetched.topic, rows),
            "partition": lambda: constants.int32(self._fetched.partition, rows),
            "offset": lambda: offsets.array(schema.field("offset").type),
            "timestamp": lambda: times.array(schema.field("timestamp").type),
            "timestampType": lambda: constants.int32(int(bool(self.log_append_time)), rows),
            "headers": lambda: header_array(rows, lists, names, contents),
        }
        if not wanted:
            # Without columns Arrow knows how many rows there are only if there was one.
            return pa.RecordBatch.from_arrays([constants.int32(0, rows)], ["none"]).select([])
        return pa.RecordBatch.from_arrays([arrays[name]() for name in wanted], schema=schema)


class ColumnOfNumbers:
    """The buffer of a column of 64-bit integers."""

    def __init__(self, rows: int, *, wanted: bool) -> None:
        self._rows = rows
        self._buffer = pa.allocate_buffer(8 * rows) if wanted else None
        self.view = _NO_LONGS if self._buffer is None else memoryview(self._buffer).cast("B").cast("q")

    def array(self, kind: pa.DataType) -> pa.Array:
        return pa.Array.from_buffers(kind, self._rows, [None, self._buffer], null_count=0)


class ColumnOfBytes:
    """The buffers of a column of byte strings, or of lists: where each ends, the bytes, and which rows are there."""

    def __init__(self, rows: int, size: int, nulls: int, *, wanted: bool, always_marked: bool = False) -> None:
        self.rows, self.nulls = rows, nulls
        self.views: tuple[memoryview, memoryview, memoryview] = (_NO_INTS, _NO_BYTES, _NO_BYTES)
        self.validity: pa.Buffer | None = None
        if not wanted:
            return
        self.ends = pa.allocate_buffer(4 * (rows + 1))
        self.data = pa.allocate_buffer(size)
        ends = memoryview(self.ends).cast("B").cast("i")
        ends[0] = 0
        bits = _NO_BYTES
        if nulls > 0 or always_marked:
            self.validity = pa.allocate_buffer((rows + 7) // 8)
            bits = memoryview(self.validity).cast("B")
        self.views = (ends, memoryview(self.data).cast("B"), bits)

    def array(self, kind: pa.DataType) -> pa.Array:
        validity = self.validity if self.nulls else None
        return pa.Array.from_buffers(kind, self.rows, [validity, self.ends, self.data], null_count=self.nulls)
