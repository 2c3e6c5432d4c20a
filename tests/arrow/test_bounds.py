"""Memory is bounded by bytes, whatever rows, partitions and types make of them."""

from __future__ import annotations

import mmap
import struct
import tempfile
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millstream import arrow
from millstream.arrow import cutting
from millstream.arrow.columns import Column, bytes_column
from millstream.arrow.cutting import COPIED_BYTES_MAX, pieces
from millstream.arrow.encoding import SPARE_BYTES_MAX, Encoder, Names, rows_of
from millstream.arrow.sources import split_by_topic
from millstream.arrow.writer import BATCH_BYTES, TURN_BYTES, TURNS_MAX
from millstream.client import produce as produce_module
from millstream.records.codecs import Codec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VALUE = Names(None, "value", None, None)
GIB = 1 << 30
MIB = 1 << 20


def contents(column: Column) -> list[bytes]:
    return [bytes(column.data[start:end]) for start, end in pairwise(column.ends.tolist())]


def encode(encoder: Encoder, batch: pa.RecordBatch) -> memoryview:
    order = memoryview(struct.pack(f"{batch.num_rows}i", *range(batch.num_rows))).cast("i")
    encoded, _ = encoder.encode(rows_of(batch, VALUE, 0), order, 0, batch.num_rows, 0)
    return encoded


def held(batches: list[memoryview]) -> int:
    """What they keep alive, each buffer once."""
    return sum({id(batch.obj): len(batch.obj) for batch in batches}.values())


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_small_batches_hold_little_memory(codec: Codec) -> None:
    encoder = Encoder(codec, BATCH_BYTES, None, transactional=False)
    batches = [encode(encoder, pa.record_batch({"value": [b"x" * size] * 3})) for size in range(1, 1000)]
    assert held(batches) <= 2 * sum(map(len, batches))
    assert len({id(batch.obj) for batch in batches}) == len(batches), "two share a buffer"


def test_full_batches_stay_where_they_were_encoded_and_their_buffers_come_back() -> None:
    encoder = Encoder(Codec.NONE, BATCH_BYTES, None, transactional=False)
    full = pa.record_batch({"value": [b"x" * 999] * 990})
    batches = [encode(encoder, full) for _ in range(30)]
    buffers = {id(batch.obj) for batch in batches}
    assert {len(batch.obj) for batch in batches} == {61 + BATCH_BYTES}
    for batch in batches:
        encoder.give_back(batch)
    assert sum(map(len, encoder._spare)) <= SPARE_BYTES_MAX
    assert id(encode(encoder, full).obj) in buffers


def test_many_partitions_share_the_memory_that_one_may_have(
    bootstrap: str, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way: list[memoryview] = []
    most, send = 0, produce_module._send

    async def measured(client: Any, node: int, batches: Any, *how: Any) -> Any:
        nonlocal most
        under_way.extend(batches.values())
        most = max(most, held(under_way))
        try:
            return await send(client, node, batches, *how)
        finally:
            gone = set(map(id, batches.values()))
            under_way[:] = [batch for batch in under_way if id(batch) not in gone]

    monkeypatch.setattr(produce_module, "_send", measured)
    topic = make_topic(200)
    keys = [b"%d" % number for number in range(6_000)]
    written = arrow.write(bootstrap, topic, pa.table({"key": keys, "value": [b"x" * 1_000] * len(keys)}))
    assert sum(each.records for each in written.values()) == len(keys)
    assert 0 < most <= TURNS_MAX * (TURN_BYTES + BATCH_BYTES)


@pytest.fixture
def three_gib() -> Iterator[pa.Array]:
    """A column of 3 GiB in values of 1 MiB, in a file of which only the few bytes that differ take room."""
    count = 3 * GIB // MIB
    with tempfile.TemporaryFile() as file:
        for number in range(count):
            file.seek(number * MIB)
            file.write(b"%04d" % number)
        file.truncate(3 * GIB)
        file.flush()
        mapped = mmap.mmap(file.fileno(), 3 * GIB, access=mmap.ACCESS_READ)
        ends = pa.py_buffer(struct.pack(f"{count + 1}q", *range(0, 3 * GIB + 1, MIB)))
        yield pa.Array.from_buffers(pa.large_binary(), count, [None, ends, pa.py_buffer(mapped)])


def test_a_chunk_of_more_than_two_gib_is_seen_slice_by_slice(three_gib: pa.Array) -> None:
    for start in (0, 2_047, 2_048, 3_000):
        column = bytes_column(three_gib.slice(start, 3), "value")
        found = [bytes(column.data[at : at + 4]) for at in column.ends.tolist()[:-1]]
        assert found == [b"%04d" % number for number in range(start, start + 3)]
        assert column.ends.tolist() == [0, MIB, 2 * MIB, 3 * MIB]


def test_a_batch_of_more_than_two_gib_is_cut(three_gib: pa.Array) -> None:
    cut = list(pieces(pa.record_batch({"value": three_gib}), VALUE))
    assert [piece.num_rows for piece in cut] == [1_536, 1_536]
    assert bytes(rows_of(cut[1], VALUE, 0).value.data[:4]) == b"1536"


def shared(kind: str, rows: int, size: int) -> pa.Array:
    """One value in all rows, which is there once."""
    value = b"x" * size
    if kind == "dictionary":
        indices = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
        return pa.DictionaryArray.from_arrays(indices, pa.array([value]))
    if kind == "dictionary of views":
        indices = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
        return pa.DictionaryArray.from_arrays(indices, pa.array([value, None], pa.binary_view()))
    views = pa.py_buffer(struct.pack("i4sii", size, b"xxxx", 0, 0) * rows)
    return pa.Array.from_buffers(pa.binary_view(), rows, [None, views, pa.py_buffer(value)])


@pytest.mark.parametrize("kind", ["dictionary", "dictionary of views", "views"])
def test_rows_that_share_their_bytes_are_not_all_copied_at_once(kind: str) -> None:
    rows, size = 60_000, 40_000
    batch = pa.record_batch({"value": shared(kind, rows, size)})
    cut = list(pieces(batch, VALUE))
    assert sum(piece.num_rows for piece in cut) == rows
    assert max(piece.num_rows for piece in cut) * size <= COPIED_BYTES_MAX
    last = rows_of(cut[-1], VALUE, 0).value
    assert set(contents(last)) == {b"x" * size}
    # The same in headers.
    pairs = pa.StructArray.from_arrays([pa.array(["k"] * 2_000), shared(kind, 2_000, size)], ["key", "value"])
    headers = pa.ListArray.from_arrays(pa.array(range(2_001), pa.int32()), pairs)
    parts = list(pieces(pa.record_batch({"headers": headers}), Names(None, None, "headers", None)))
    assert max(part.num_rows for part in parts) * size <= COPIED_BYTES_MAX
    seen = rows_of(parts[-1], Names(None, None, "headers", None), 0)
    assert seen.headers.ends.tolist() == list(range(parts[-1].num_rows + 1))
    assert len(contents(seen.contents)) == parts[-1].num_rows


def test_rows_that_share_their_bytes_are_told_apart_by_topic_piece_by_piece() -> None:
    batch = pa.record_batch({"topic": ["one", "two", "two"] * 1_000, "value": shared("views", 3_000, 40_000)})
    counts: Counter[str] = Counter()
    for topic, rows in split_by_topic(batch):
        assert 0 < rows.num_rows * 40_000 <= COPIED_BYTES_MAX
        counts[topic] += rows.num_rows
    assert counts == {"one": 1_000, "two": 2_000}


def test_what_is_not_much_is_not_cut() -> None:
    texts = pa.array(["a", None, "b" * 100] * 10_000)
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        column = texts.dictionary_encode() if pa.types.is_dictionary(kind) else texts.cast(kind)
        assert len(list(pieces(pa.record_batch({"value": column}), VALUE))) == 1
    fixed = pa.array([b"x" * 1_000] * 40_000, pa.binary(1_000))
    assert len(list(pieces(pa.record_batch({"value": fixed}), VALUE))) == 2


def test_pieces_are_written_in_their_order(bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "COPIED_BYTES_MAX", 1_000)
    values = pa.array([b"%05d" % number for number in range(5_000)], pa.binary_view())
    arrow.write(bootstrap, topic, pa.table({"value": values}))
    assert arrow.read(bootstrap, topic).column("value").to_pylist() == values.to_pylist()
