"""Following a topic: what is there, what comes, and where to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from millstream import arrow
from millstream.arrow.decoding import CHUNK_BYTES
from millstream.client.admin.topics import create_partitions
from millstream.client.sync import SyncClient
from tests.support.topics import until_led

if TYPE_CHECKING:
    from collections.abc import Callable


def table(*values: bytes) -> pa.Table:
    return pa.table({"value": list(values)})


def values(batch: pa.RecordBatch) -> list[bytes]:
    found: list[bytes] = batch.column("value").to_pylist()
    return found


def test_a_stream_goes_on_with_what_comes(bootstrap: str, topic: str) -> None:
    arrow.write(bootstrap, topic, table(b"a"))
    with arrow.stream(bootstrap, topic) as stream:
        assert values(next(stream)) == [b"a"]
        for value in (b"b", b"c"):
            arrow.write(bootstrap, topic, table(value))
            assert values(next(stream)) == [value]
    with pytest.raises(StopIteration):
        next(stream)


def test_a_stream_from_the_end_sees_only_what_is_new(bootstrap: str, topic: str) -> None:
    arrow.write(bootstrap, topic, table(b"old"))
    with arrow.stream(bootstrap, topic, start="latest") as stream:
        assert stream.offsets == {(topic, 0): 1}
        arrow.write(bootstrap, topic, table(b"new"))
        assert values(next(stream)) == [b"new"]


def test_a_stream_with_an_end_waits_for_it_and_stops(bootstrap: str, topic: str) -> None:
    arrow.write(bootstrap, topic, table(b"a", b"b"))
    with arrow.stream(bootstrap, topic, end=4) as stream:
        assert values(next(stream)) == [b"a", b"b"]
        arrow.write(bootstrap, topic, table(b"c", b"d", b"too much"))
        assert [value for batch in stream for value in values(batch)] == [b"c", b"d"]
        assert stream.offsets == {(topic, 0): 4}


def test_a_stream_that_nothing_comes_to_ends_if_told_so(bootstrap: str, topic: str) -> None:
    arrow.write(bootstrap, topic, table(b"a"))
    assert [values(batch) for batch in arrow.stream(bootstrap, topic, idle_ms=1)] == [[b"a"]]


def test_offsets_are_where_another_stream_goes_on(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(3)
    written = [b"%04d" % index for index in range(5000)]
    arrow.write(bootstrap, topic, pa.table({"key": written, "value": written}), batch_bytes=2000)
    seen: list[bytes] = []
    offsets: dict[tuple[str, int], int] | None = None
    streams = 0
    while len(seen) < len(written):
        streams += 1
        # Every stream is left after its second batch; whatever else it had asked for is forgotten.
        with arrow.stream(
            bootstrap, topic, start=offsets or "earliest", end="latest", fetch_bytes=20_000, partition_bytes=10_000
        ) as stream:
            for _, batch in zip(range(2), stream, strict=False):
                seen += values(batch)
            offsets = stream.offsets
    assert streams > 3
    assert sorted(seen) == written


def test_nothing_to_read_ends_at_once(bootstrap: str, topic: str) -> None:
    with arrow.stream(bootstrap, topic, end="latest") as stream:
        assert list(stream) == []
    with arrow.stream(bootstrap, f"^{topic}-nothing", end="latest") as stream:
        assert list(stream) == []


def test_a_pattern_may_match_nothing_yet(bootstrap: str, make_topic: Callable[..., str], fresh_name: str) -> None:
    options = {"bootstrap.servers": bootstrap, "metadata.max.age.ms": 50}
    with arrow.stream(options, f"^{fresh_name}-later") as stream:
        later = make_topic(1, "-later")
        arrow.write(bootstrap, later, table(b"a"))
        assert values(next(stream)) == [b"a"]


def test_new_partitions_and_topics_are_taken_up(bootstrap: str, make_topic: Callable[..., str]) -> None:
    one = make_topic(1, "-one")
    arrow.write(bootstrap, one, table(b"a"))
    options = {"bootstrap.servers": bootstrap, "metadata.max.age.ms": "50"}
    with arrow.stream(options, f"^{one.removesuffix('one')}.*") as stream, SyncClient(options) as client:
        assert values(next(stream)) == [b"a"]
        client.run(create_partitions, {one: 2})
        until_led(bootstrap, one, 2)
        arrow.write(bootstrap, one, pa.table({"value": [b"b"], "place": [1]}), partition_by="place")
        assert values(next(stream)) == [b"b"]
        two = make_topic(1, "-two")
        arrow.write(bootstrap, two, table(b"c"))
        assert values(next(stream)) == [b"c"]
        assert stream.offsets == {(one, 0): 1, (one, 1): 1, (two, 0): 1}


def test_memory_does_not_grow_with_the_topic(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(2)
    chunk = pa.record_batch({"value": [b"x" * 1000] * 5000})
    arrow.write(bootstrap, topic, [chunk] * 10, compression="zstd")
    arrow.write(bootstrap, topic, [chunk] * 5)
    before, most, seen = pa.total_allocated_bytes(), 0, 0
    with arrow.stream(bootstrap, topic, end="latest", fetch_bytes=1 << 20, partition_bytes=1 << 19) as stream:
        for batch in stream:
            seen += batch.num_rows
            most = max(most, pa.total_allocated_bytes() - before)
    assert seen == 75_000
    # 75 MB went through, and a chunk of compressed batches is never more than CHUNK_BYTES and one batch.
    assert most < CHUNK_BYTES + (1 << 20)


def test_a_busy_partition_does_not_hide_the_others(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(2)
    many = pa.table({"value": [b"x" * 1000] * 500 + [b"quiet"], "place": [0] * 500 + [1]})
    arrow.write(bootstrap, topic, many, partition_by="place", batch_bytes=2000)
    with arrow.stream(bootstrap, topic, fetch_bytes=3000, partition_bytes=3000) as stream:
        before = 0
        for batch in stream:
            if batch.column("partition")[0].as_py() == 1:
                break
            before += 1
    assert before <= 5
