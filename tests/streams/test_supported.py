"""What Spark's own operators would take for the same, and the test driver does not, runs in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from millstream.streams import StreamsBuilder, TopologyTestDriver, col, left, value
from millstream.streams.lower.deciding import engines

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Point:
    x: float


@dataclass
class Alike:
    item: str
    Item: str


@dataclass
class Holding:
    inside: Alike


def counted(builder: StreamsBuilder) -> None:
    builder.stream("in").group_by_key().count().to_stream().to("out")


def joined(builder: StreamsBuilder) -> None:
    builder.stream("in").join(builder.table("table"), left()).to("out")


def passed_on(builder: StreamsBuilder) -> None:
    builder.stream("in").filter(value() != "x").to("out")


@pytest.mark.parametrize(
    ("key", "build", "reason"),
    [
        (float, counted, "keys with doubles are compared as bytes"),
        (Point, counted, "keys with doubles are compared as bytes"),
        (float, joined, "keys with doubles are compared as bytes"),
        (int, counted, ""),
        (float, passed_on, ""),
    ],
)
def test_keys_are_equal_if_their_bytes_are(key: Any, build: Callable[[StreamsBuilder], None], reason: str) -> None:
    builder = StreamsBuilder(key=key, value=str)
    build(builder)
    (found,) = engines(builder.build().plan)
    assert found == "0: spark" if not reason else found.endswith(reason)


def test_the_driver_tells_two_zeros_apart_and_knows_one_nan() -> None:
    builder = StreamsBuilder(key=float, value=str)
    counted(builder)
    with TopologyTestDriver(builder.build()) as driver:
        for bits in (0, 1 << 63, 0, 0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000):
            driver.pipe_raw("in", bits.to_bytes(8), b"x", 0)
        found = driver.output_topic("out").read_key_values_to_list()
    assert [(str(key), count) for key, count in found] == [
        ("0.0", 1),
        ("-0.0", 1),
        ("0.0", 2),
        ("nan", 1),
        ("nan", 2),
        ("nan", 3),
    ]


@pytest.mark.parametrize("kind", [Alike, Holding])
def test_names_that_differ_in_case_are_different_names(kind: type) -> None:
    builder = StreamsBuilder(key=str, value=kind)
    field = "Item" if kind is Alike else "inside.Item"
    builder.stream("in").filter(col(field) == "b").to("out")
    topology = builder.build()
    assert engines(topology.plan)[0].endswith("differ in case only")
    content = b'{"item":"a","Item":"b"}' if kind is Alike else b'{"inside":{"item":"a","Item":"b"}}'
    with TopologyTestDriver(topology) as driver:
        driver.pipe_raw("in", b"k", content, 0)
        assert driver.output_topic("out").queue_size() == 1
