"""The native loops agree with the object-by-object walker, in both of their forms."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.arrow import decoding, encoding, routing
from millstream.arrow.decoding import Decoder
from millstream.arrow.encoding import Encoder, Names, rows_of
from millstream.arrow.schema import SCHEMA
from millstream.client.errors import CorruptBatch
from millstream.client.fetch import Fetched
from millstream.client.reading import next_offset
from millstream.records._walker import BrokenRecords
from millstream.records.batch import HEADER_BYTES, read_header
from millstream.records.building import assemble, encode_batch
from millstream.records.codecs import Codec, Limits
from millstream.records.partitioning import partition_for_key
from millstream.records.reading import decode_records
from tests.arrow.native import INSTALLED, PLAIN
from tests.records.strategies import mangled, record_lists

if TYPE_CHECKING:
    from types import ModuleType

TIMES = st.integers(-1, 2**53)
ALL = Names("key", "value", "headers", "timestamp")


@pytest.fixture(params=[INSTALLED, PLAIN], ids=["installed", "plain"], autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    columns: ModuleType
    scatter: ModuleType
    columns, scatter = request.param
    monkeypatch.setattr(decoding, "_columns", columns)
    monkeypatch.setattr(encoding, "_scatter", scatter)
    monkeypatch.setattr(routing, "_scatter", scatter)


def claim(test: Any) -> Any:
    """The form does not change between examples."""
    return settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])(test)


def fetched(batches: bytes) -> Fetched:
    return Fetched("t", 3, memoryview(batches), 100, 100, 0, ())


def table_of(records: list[Any]) -> pa.RecordBatch:
    keys, values, headers, times = zip(*records, strict=True)
    pairs = [[{"key": name, "value": content} for name, content in each] or None for each in headers]
    return pa.record_batch(
        [
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array(pairs, SCHEMA.field("headers").type),
            pa.array(times, pa.int64()),
        ],
        names=["key", "value", "headers", "timestamp"],
    )


def timed(records: list[Any]) -> list[Any]:
    """Times that a Python datetime can show."""
    return [(key, value, headers, time % 2**45) for key, value, headers, time in records]


@claim
@given(st.lists(record_lists, min_size=1, max_size=4), st.sampled_from(Codec), st.integers(0, 60), st.integers(0, 60))
def test_columns_hold_what_the_walker_finds(batches: list[list[Any]], codec: Codec, low: int, high: int) -> None:
    offset, encoded, expected = 0, b"", []
    for records in batches:
        batch = encode_batch(timed(records), base_offset=offset, codec=codec)
        expected += [record for record in decode_records(batch) if low <= record.offset < high]
        encoded += batch
        offset += len(records)
    found = [
        row
        for batch, _ in Decoder(SCHEMA, read_committed=True).decode(fetched(encoded), low, high)
        for row in _checked(batch).to_pylist()
    ]
    assert [(row["offset"], row["key"], row["value"]) for row in found] == [
        (record.offset, record.key, record.value) for record in expected
    ]
    assert [[(each["key"], each["value"]) for each in row["headers"] or ()] for row in found] == [
        list(record.headers) for record in expected
    ]
    assert [round(row["timestamp"].timestamp() * 1000) for row in found] == [record.timestamp for record in expected]
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in found} <= {("t", 3, 0)}


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch.validate(full=True)
    return batch


@claim
@given(st.data(), record_lists)
def test_a_mangled_batch_is_an_error_or_still_a_table(data: st.DataObject, records: list[Any]) -> None:
    batch = encode_batch(records)
    payload = data.draw(mangled(bytes(batch[HEADER_BYTES:])))
    broken = assemble(read_header(batch), payload)
    # Whatever else it is, what comes of a mangled batch must not break its readers.
    with suppress(CorruptBatch):
        for found, _ in Decoder(SCHEMA, read_committed=True).decode(fetched(bytes(broken)), 0, 2**62):
            _checked(found)


@claim
@given(st.lists(record_lists, min_size=1, max_size=3), st.sampled_from(Codec), st.integers(60, 2000))
def test_rows_become_the_records_that_they_say(parts: list[list[Any]], codec: Codec, batch_bytes: int) -> None:
    records = [record for part in parts for record in part]
    # A slice, so that no column starts at the beginning of its buffers.
    table = table_of([records[0], *records]).slice(1)
    encoder = Encoder(codec, batch_bytes, None, transactional=False)
    # No time is now, and here that is none either.
    rows, at, found = rows_of(table, ALL, -1), 0, []
    order = memoryview(pa.array(range(len(records)), pa.int32()).buffers()[1]).cast("B").cast("i")
    while at < len(records):
        batch, after = encoder.encode(rows, order, at, len(records), 0)
        header = read_header(batch)
        assert header.count == after - at
        assert header.max_timestamp == max(record[3] for record in records[at:after])
        found += decode_records(batch, check_crc=True)
        at = after
    assert [(each.key, each.value, list(each.headers), each.timestamp) for each in found] == [
        (key, value, headers, time) for key, value, headers, time in records
    ]


@claim
@given(st.lists(st.one_of(st.none(), st.binary(max_size=30)), min_size=1, max_size=50), st.integers(1, 40))
def test_a_key_goes_where_java_sends_it(keys: list[bytes | None], partitions: int) -> None:
    batch = pa.record_batch({"key": pa.array([None, *keys], pa.binary())}).slice(1)
    router = routing.Router(partitions, "sticky", first=0, sticky_bytes=100)
    order, starts = router.route(batch, rows_of(batch, Names("key", None, None, None), 0))
    chosen = {row: p for p in range(partitions) for row in order[starts[p] : starts[p + 1]]}
    assert sorted(chosen) == list(range(len(keys)))
    for p in range(partitions):
        assert list(order[starts[p] : starts[p + 1]]) == sorted(order[starts[p] : starts[p + 1]])
    for row, key in enumerate(keys):
        assert key is None or chosen[row] == partition_for_key(key, partitions)


def test_broken_records_are_described_as_the_walker_does() -> None:
    batch = encode_batch([(b"k", b"v", (), 0)])
    header = read_header(batch)._replace(count=2, last_offset_delta=1)
    with pytest.raises(CorruptBatch, match=r"topic 't' partition 3 offset 0: record 1 of the batch") as caught:
        list(Decoder(SCHEMA, read_committed=True).decode(fetched(bytes(assemble(header, batch[HEADER_BYTES:]))), 0, 9))
    assert str(BrokenRecords(1, 1)) in str(caught.value)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("damage", ["crc", "records", "header"])
def test_what_lies_before_a_broken_batch_is_handed_out_first(damage: str, codec: Codec) -> None:
    batches = [encode_batch([(None, b"v%d" % n, (), 5)] * 2, base_offset=2 * n, codec=codec) for n in range(3)]
    middle = bytearray(batches[1])
    if damage == "crc":
        middle[-1] ^= 1
    elif damage == "records":
        middle = bytearray(assemble(read_header(middle)._replace(count=3), middle[HEADER_BYTES:]))
    else:
        # The magic: nobody knows what comes behind it.
        middle[16] = 7
    answer = fetched(bytes(batches[0] + middle + batches[2]))
    assert next_offset(answer, 0) == (2 if damage == "header" else 6)
    seen: list[tuple[list[int], int]] = []

    def read() -> None:
        for batch, position in Decoder(SCHEMA, read_committed=True).decode(answer, 0, 9):
            seen.append((batch.column("offset").to_pylist(), position))

    with pytest.raises(CorruptBatch) as caught:
        read()
    assert seen == [([0, 1], 2)]
    assert caught.value.offset == 2
    assert caught.value.next_offset == (None if damage == "header" else 4)


def test_a_reader_takes_what_is_all_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = encode_batch([(None, bytes(30_000_000), (), 0)], codec=Codec.ZSTD)
    assert len(batch) * 1_000 < 30_000_000
    ((found, _),) = Decoder(SCHEMA, read_committed=True).decode(fetched(bytes(batch)), 0, 9)
    assert len(found.column("value")[0].as_buffer()) == 30_000_000
    monkeypatch.setattr(decoding, "READ_LIMITS", Limits(1_000_000, 1 << 31))
    with pytest.raises(CorruptBatch, match="topic 't' partition 3 offset 0: the batch decompresses to more than"):
        list(Decoder(SCHEMA, read_committed=True).decode(fetched(bytes(batch)), 0, 9))


def test_header_names_that_are_no_text_are_replaced() -> None:
    batch = encode_batch([(None, None, [("ab", b"1")], 0)])
    payload = bytes(batch[HEADER_BYTES:]).replace(b"ab", b"\xff\xfe")
    (found, _), *_ = Decoder(SCHEMA, read_committed=True).decode(
        fetched(bytes(assemble(read_header(batch), payload))), 0, 9
    )
    assert found.column("headers").to_pylist() == [[{"key": "\ufffd\ufffd", "value": b"1"}]]


def test_offsets_with_gaps_are_kept() -> None:
    first = encode_batch([(b"a", b"1", (), 5), (b"b", b"2", (), 6)], base_offset=10)
    header = read_header(first)._replace(last_offset_delta=9)
    gap = assemble(header, first[HEADER_BYTES:])
    after = encode_batch([(b"c", b"3", (), 7)], base_offset=20, log_append_time_ms=99)
    found = list(Decoder(SCHEMA, read_committed=True).decode(fetched(bytes(gap + after)), 11, 2**62))
    # Two kinds of timestamps are two record batches, and each says where to go on.
    assert [(batch.column("offset").to_pylist(), position) for batch, position in found] == [([11], 20), ([20], 21)]
    assert [batch.column("timestampType").to_pylist() for batch, _ in found] == [[0], [1]]
    assert found[1][0].column("timestamp").cast(pa.int64()).to_pylist() == [99]
