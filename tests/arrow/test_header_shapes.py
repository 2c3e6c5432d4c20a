"""Headers lie in memory in many ways, and are the same records."""

from __future__ import annotations

from array import array
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millstream import arrow
from millstream.arrow.columns import Column
from millstream.arrow.encoding import Names, rows_of
from millstream.arrow.sources import split_by_topic

if TYPE_CHECKING:
    from collections.abc import Callable

HEADERS = Names(None, None, "headers", None)
PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])
VIEWS = pa.struct([("key", pa.string_view()), ("value", pa.binary_view())])
GIVEN = [[("h", b"1")], None, [], [("i", b"2"), ("j", None)], [("a name that is longer than a view", b"3")]]

SHAPES = {
    "list": pa.list_(PAIR),
    "large_list": pa.large_list(PAIR),
    "list of views": pa.list_(VIEWS),
    "large_list of views": pa.large_list(VIEWS),
    "list_view": pa.list_view(PAIR),
    "large_list_view": pa.large_list_view(PAIR),
    "list_view of views": pa.list_view(VIEWS),
    "map": pa.map_(pa.string(), pa.binary()),
    "large types": pa.list_(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())])),
}


def seen(column: pa.Array) -> list[list[tuple[bytes, bytes | None]]]:
    """The headers of each row as the native code reads them."""
    rows = rows_of(pa.record_batch({"headers": column}), HEADERS, 0)
    names, contents = each(rows.names), each(rows.contents)
    found = []
    for row, (start, end) in enumerate(pairwise(rows.headers.ends.tolist())):
        here = is_there(rows.headers, row)
        found.append([(names[at] or b"", contents[at]) for at in range(start, end)] if here else [])
    return found


def each(column: Column) -> list[bytes | None]:
    spans = enumerate(pairwise(column.ends.tolist()))
    return [bytes(column.data[start:end]) if is_there(column, at) else None for at, (start, end) in spans]


def is_there(column: Column, at: int) -> bool:
    at += column.valid_at
    return not len(column.valid) or bool(column.valid[at >> 3] >> (at & 7) & 1)


def expected(rows: list[Any]) -> list[list[tuple[bytes, bytes | None]]]:
    return [[(name.encode(), content) for name, content in row or []] for row in rows]


def made(kind: pa.DataType) -> pa.Array:
    """Two pieces, so that a slice is behind something."""
    if pa.types.is_map(kind):
        return pa.array(GIVEN * 3, kind)
    values = [None if row is None else [{"key": name, "value": content} for name, content in row] for row in GIVEN]
    return pa.array(values * 3, kind)


@pytest.mark.parametrize("shape", SHAPES)
def test_headers_are_seen_in_every_shape_and_slice(shape: str) -> None:
    column = made(SHAPES[shape])
    for start, count in ((0, 15), (0, 1), (1, 3), (3, 2), (4, 11), (14, 1), (1, 2)):
        assert seen(column.slice(start, count)) == expected((GIVEN * 3)[start : start + count]), (start, count)


@pytest.mark.parametrize("kind", [pa.list_view, pa.large_list_view])
def test_lists_that_overlap_and_lie_in_any_order_are_seen(kind: Any) -> None:
    pairs = pa.array([{"key": name, "value": name.encode()} for name in "abcd"], PAIR)
    width, make = (pa.int64(), pa.LargeListViewArray) if kind is pa.large_list_view else (pa.int32(), pa.ListViewArray)
    column = make.from_arrays(pa.array([2, 0, 1, 1], width), pa.array([2, 1, 0, 3], width), pairs)
    names = [[name.decode() for name, _ in row] for row in seen(column)]
    assert names == [["c", "d"], ["a"], [], ["b", "c", "d"]]
    assert [len(row) for row in seen(column.slice(1, 2))] == [1, 0]


@pytest.mark.parametrize("shape", ["list", "large_list", "list_view"])
def test_what_lies_beneath_a_null_list_is_nobodys_header(shape: str) -> None:
    pairs = pa.StructArray.from_arrays([pa.array(["k", None, "l"]), pa.array([b"1", b"2", b"3"])], ["key", "value"])
    large = shape == "large_list"
    ends = pa.array([0, 1, 2, 3], pa.int64() if large else pa.int32())
    nulls = pa.array([False, True, False])
    if shape == "list_view":
        sizes = pa.array([1, 1, 1], pa.int32())
        column = pa.ListViewArray.from_arrays(ends.slice(0, 3), sizes, pairs, mask=nulls)
    else:
        column = (pa.LargeListArray if large else pa.ListArray).from_arrays(ends, pairs, mask=nulls)
    assert seen(column) == [[(b"k", b"1")], [], [(b"l", b"3")]]
    with pytest.raises(ValueError, match="a header has no key"):
        seen(pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pairs))


def test_headers_without_any_content_are_seen() -> None:
    """Nothing but null has a type of its own, and no bytes at all."""
    assert seen(pa.array([[{"key": "k", "value": None}], []])) == [[(b"k", None)], []]


@pytest.mark.parametrize(("ends", "size"), [([0, 1, 2], 3), ([0, 1, 2, 3, 3], 3), ([0, 1, 2, 4], 3)], ids=str)
def test_a_column_that_is_malformed_never_reaches_the_native_code(ends: list[int], size: int) -> None:
    with pytest.raises(ValueError, match="column 'value' is malformed"):
        Column(memoryview(array("i", ends))).checked(3, size, "value")
    assert Column().checked(3, 0, "value") == Column()


def test_what_arrows_cast_makes_of_a_list_view_is_seen_or_refused() -> None:
    """In Arrow 26 it has an end too few."""
    casted = made(SHAPES["list_view"]).cast(SHAPES["list"])
    with suppress(ValueError):
        assert seen(casted) == expected(GIVEN * 3)


@pytest.mark.parametrize("shape", ["list_view", "large_list_view", "map"])
def test_headers_of_these_shapes_are_read_back(bootstrap: str, topic: str, shape: str) -> None:
    column = made(SHAPES[shape])
    arrow.write(bootstrap, topic, pa.table({"value": [b"v"] * len(column), "headers": column}))
    found = arrow.read(bootstrap, topic).column("headers").to_pylist()
    wanted = [[{"key": name, "value": content} for name, content in row or []] or None for row in GIVEN * 3]
    assert found == wanted


@pytest.mark.parametrize("shape", [*SHAPES, "map of views"])
def test_rows_of_several_topics_are_told_apart_whatever_their_headers_are(shape: str) -> None:
    views = made(SHAPES["map"]).cast(pa.map_(pa.string_view(), pa.binary_view())) if shape == "map of views" else None
    column = views if views is not None else made(SHAPES[shape])
    topics = ["one", "two", "one"] * 5
    parts = list(split_by_topic(pa.record_batch({"topic": topics, "headers": column})))
    for name, rows in parts:
        wanted = [row for row, topic in zip(GIVEN * 3, topics, strict=True) if topic == name]
        assert seen(rows.column("headers")) == expected(wanted)


def test_a_map_of_views_is_written_to_several_topics(bootstrap: str, make_topic: Callable[..., str]) -> None:
    one, two = make_topic(suffix="-one"), make_topic(suffix="-two")
    headers = pa.array([[("a", "1")]] * 2, pa.map_(pa.string(), pa.string()))
    views = headers.cast(pa.map_(pa.string_view(), pa.string_view()))
    arrow.write(bootstrap, None, pa.table({"topic": [one, two], "value": ["1", "2"], "headers": views}))
    assert arrow.read(bootstrap, two).column("headers").to_pylist() == [[{"key": "a", "value": b"1"}]]
