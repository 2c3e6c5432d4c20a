"""What people have in their hands is taken as it is: Polars' views and categories, NumPy's numbers, lists."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from millstream.arrow.encoding import Column, Names, bytes_column, fitting, rows_of
from millstream.arrow.positions import _spelled_out, _timestamp, _whole
from millstream.arrow.routing import Router
from millstream.arrow.schema import schema_of
from millstream.arrow.sources import each_batch, split_by_topic
from millstream.arrow.writing import _codec
from millstream.records.codecs import Codec, compress

VALUE = Names(None, "value", None, None)
NOW_MS = 1_700_000_000_000


def contents(column: Column) -> list[bytes]:
    ends = column.ends.tolist()
    return [bytes(column.data[start:end]) for start, end in pairwise(ends)]


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["x", "y"])], ids=str)
def test_polars_frames_are_split_by_topic_and_read_as_bytes(kind: Any) -> None:
    texts = pl.Series(["x", "y", "x"], dtype=kind)
    headers = [[{"key": "h", "value": b"1"}], None, []]
    (batch,) = each_batch(pl.DataFrame({"topic": texts, "value": texts, "headers": headers}))
    parts = list(split_by_topic(batch))
    assert [(topic, rows.num_rows) for topic, rows in parts] == [("x", 2), ("y", 1)]
    rows = rows_of(parts[0][1], Names(None, "value", "headers", None), 0)
    assert (contents(rows.value), contents(rows.names)) == ([b"x", b"x"], [b"h"])


def test_a_dictionary_of_views_keeps_its_nulls() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint8()), pa.array(["a", "b"], pa.string_view()))
    found = bytes_column(column, "value")
    assert contents(found) == [b"b", b"", b"a"]
    assert len(found.valid)
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"]))
    assert contents(bytes_column(json, "value")) == [b"{}"]
    with pytest.raises(TypeError, match="column 'value' holds int64"):
        bytes_column(pa.array([1]).dictionary_encode(), "value")


@pytest.mark.parametrize("names", [("key", "value"), ("value", "key"), ("k", "v")])
def test_headers_are_known_by_their_names_or_else_by_their_place(names: tuple[str, str]) -> None:
    pair = {"key": "k", "value": "v"} if "key" in names else {"k": "k", "v": "v"}
    kind = pa.list_(pa.struct([(name, pa.string()) for name in names]))
    batch = pa.record_batch({"headers": pa.array([[pair]], kind)})
    rows = rows_of(batch, Names(None, None, "headers", None), 0)
    assert (contents(rows.names), contents(rows.contents)) == ([b"k"], [b"v"])


def test_kafkas_word_for_no_time_is_now() -> None:
    batch = pa.record_batch({"timestamp": pa.array([5, -1, None, 7], pa.int64())}).slice(1)
    rows = rows_of(batch, Names(None, None, None, "timestamp"), NOW_MS)
    assert rows.times.tolist() == [NOW_MS, NOW_MS, 7]


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("microseconds", [-1, -500, -1_500, -2_000, -5_000_000])
def test_a_time_before_1970_is_refused_however_fine_it_is(unit: str, microseconds: int) -> None:
    """Cut towards zero, half a millisecond before 1970 would be 1970; cut downwards, Kafka's word for now."""
    ticks = microseconds * (1_000 if unit == "ns" else 1)
    batch = pa.record_batch({"timestamp": pa.array([5_000_000, None, ticks], pa.timestamp(unit, "UTC"))})
    with pytest.raises(ValueError, match="a timestamp is -1 or counts from 1970"):
        rows_of(batch, Names(None, None, None, "timestamp"), NOW_MS)


def test_times_of_every_unit_are_milliseconds() -> None:
    for unit, ticks in (("s", 7), ("ms", 7_000), ("us", 7_000_999), ("ns", 7_000_999_999)):
        for zone in (None, "Asia/Tokyo"):
            batch = pa.record_batch({"timestamp": pa.array([ticks, None], pa.timestamp(unit, zone))})
            assert rows_of(batch, Names(None, None, None, "timestamp"), NOW_MS).times.tolist() == [7_000, NOW_MS]
    none = pa.record_batch({"timestamp": pa.array([-1_000, None], pa.timestamp("us"))})
    assert rows_of(none, Names(None, None, None, "timestamp"), NOW_MS).times.tolist() == [NOW_MS, NOW_MS]
    beyond = pa.record_batch({"timestamp": pa.array([9_300_000_000_000_000], pa.timestamp("s"))})
    with pytest.raises(ValueError, match="out of bounds"):
        rows_of(beyond, Names(None, None, None, "timestamp"), NOW_MS)


@pytest.mark.parametrize(
    ("time", "milliseconds"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 997_000, tzinfo=UTC), 0),
        (datetime(1960, 1, 1, tzinfo=UTC), 0),
        (datetime(1, 1, 1, tzinfo=UTC), 0),
        (datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC), 1_700_000_000_123),
        (datetime(2023, 11, 14, 22, 13, 20, 123_001, tzinfo=UTC), 1_700_000_000_124),
        (datetime(2023, 11, 14, 22, 13, 20, 123_400, tzinfo=UTC), 1_700_000_000_124),
        (datetime(2023, 11, 15, 7, 13, 20, 123_000, tzinfo=timezone(timedelta(hours=9))), 1_700_000_000_123),
    ],
    ids=str,
)
def test_a_time_means_the_first_millisecond_at_or_after_it(time: datetime, milliseconds: int) -> None:
    assert _timestamp(time) == milliseconds


@pytest.mark.parametrize(
    "made", [np.array([1.0, np.nan, 0.0]), [1, None, 0], [1.0, float("nan"), 0.0], pd.Series([1, None, 0])], ids=str
)
def test_where_a_partitioner_gives_nothing_the_key_decides(made: Any) -> None:
    batch = pa.record_batch({"key": [b"k"] * 3, "value": ["a", "b", "c"]})
    rows = rows_of(batch, Names("key", "value", None, None), 0)
    router = Router(9, lambda _batch, _partitions: made, first=0, sticky_bytes=1)
    by_key, starts = Router(9, "sticky", first=0, sticky_bytes=1).route(batch, rows)
    order, chosen = router.route(batch, rows)
    assert len(by_key) == len(order) == 3
    (keyed,) = {index for index in range(9) if starts[index] < starts[index + 1]}
    assert [1 in order[chosen[index] : chosen[index + 1]].tolist() for index in range(9)].index(True) == keyed


@pytest.mark.parametrize("made", [np.array([1, 0]), [1, 0], pa.array([1, 0]), pa.chunked_array([[1], [0]])], ids=str)
def test_a_partitioner_gives_whatever_holds_numbers(made: Any) -> None:
    batch = pa.record_batch({"value": ["a", "b"]})
    router = Router(2, lambda _batch, _partitions: made, first=0, sticky_bytes=1)
    order, starts = router.route(batch, rows_of(batch, VALUE, 0))
    assert (order.tolist(), starts.tolist()) == ([1, 0], [0, 1, 2])


def test_a_column_to_partition_by_that_is_missing_is_named() -> None:
    batch = pa.record_batch({"value": ["a"]})
    with pytest.raises(ValueError, match="no column 'nope' to partition by, the data has 'value'"):
        Router(2, "nope", first=0, sticky_bytes=1).route(batch, rows_of(batch, VALUE, 0))


def test_numbers_columns_and_codecs_come_as_people_write_them() -> None:
    assert _timestamp(_whole(np.int64(-2))) == -2  # type: ignore[arg-type]
    assert _spelled_out([("t", 0)], {np.int64(0): 7}, "earliest") == {("t", 0): 7}  # type: ignore[arg-type]
    assert schema_of("value").names == ["value"]
    assert _codec(None) is Codec.NONE


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_fits_even_if_it_cannot_be_compressed(codec: Codec) -> None:
    noise = np.random.default_rng(1).bytes(1_000_000)
    for bytes_max in (1_000, 20_000, 100_000, 900_000):
        size = fitting(bytes_max, 1 << 30, codec)
        assert bytes_max * 0.75 < size
        assert len(compress(codec, noise[:size])) + 61 <= bytes_max
    assert fitting(1_048_588, 512 * 1024, codec) == 512 * 1024
