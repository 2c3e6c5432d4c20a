"""Serdes write what Kafka's own write, and read it back."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.streams import (
    BYTES_SERDE,
    DOUBLE_SERDE,
    INT_SERDE,
    LONG_SERDE,
    STRING_SERDE,
    Serde,
    SerdeError,
    StreamsBuilder,
    Topology,
    TopologyTestDriver,
    Window,
    Windowed,
    json,
)
from millstream.streams.serdes import SessionWindowedSerde, TimeWindowedSerde, serde_of
from millstream.streams.types import LONG, STRING, Struct


@dataclass
class Point:
    x: int
    label: str | None = None


@pytest.mark.parametrize(
    ("serde", "value", "data"),
    [
        (STRING_SERDE, "é", b"\xc3\xa9"),
        (BYTES_SERDE, b"\0", b"\0"),
        (INT_SERDE, -2, b"\xff\xff\xff\xfe"),
        (LONG_SERDE, 258, b"\0\0\0\0\0\0\1\2"),
        (DOUBLE_SERDE, 1.5, b"\x3f\xf8\0\0\0\0\0\0"),
        (json(Point), Point(1), b'{"x":1,"label":null}'),
        (json(), {"a": [1, None]}, b'{"a":[1,null]}'),
        (TimeWindowedSerde(STRING_SERDE, 10), Windowed("k", Window(5, 15)), b"k\0\0\0\0\0\0\0\5"),
        (
            SessionWindowedSerde(STRING_SERDE),
            Windowed("k", Window(5, 9)),
            b"k\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\5",
        ),
    ],
    ids=str,
)
def test_bytes_are_kafkas(serde: Serde, value: object, data: bytes) -> None:
    assert serde.serialize(value) == data
    assert serde.deserialize(data) == value


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\xffb", "a\ufffdb"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xe2\x28\xa1", "\ufffd(\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),
    ],
)
def test_what_is_no_utf8_is_replaced_as_kafka_does_it(data: bytes, text: str) -> None:
    assert STRING_SERDE.deserialize(data) == text
    assert STRING_SERDE.serialize(text) == text.encode()
    with TopologyTestDriver(passing_on()) as driver:
        driver.pipe_raw("in", data, data, 0)
        assert driver.output_topic("out").read_key_value() == (text, text)


def test_half_a_surrogate_pair_is_written_as_java_writes_it() -> None:
    assert STRING_SERDE.serialize("a\ud800b") == b"a?b"


def passing_on() -> Topology:
    builder = StreamsBuilder(key=str, value=str)
    builder.stream("in").to("out")
    return builder.build()


@given(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text())
def test_values_survive(number: int, fraction: float, text: str) -> None:
    assert LONG_SERDE.deserialize(LONG_SERDE.serialize(number)) == number
    assert DOUBLE_SERDE.deserialize(DOUBLE_SERDE.serialize(fraction)) == fraction
    point = Point(number, text)
    assert json(Point).deserialize(json(Point).serialize(point)) == point


@pytest.mark.parametrize(
    ("serde", "value"),
    [(STRING_SERDE, 1), (BYTES_SERDE, "text"), (LONG_SERDE, "1"), (INT_SERDE, 2**31), (json(), object())],
)
def test_a_value_of_another_kind_is_refused(serde: Serde, value: object) -> None:
    with pytest.raises(SerdeError):
        serde.serialize(value)


def test_json_is_checked_against_its_schema() -> None:
    with pytest.raises(SerdeError):
        json(Point).deserialize(b'{"x":"one"}')
    checked = json(Struct({"x": LONG, "label": STRING}))
    assert checked.deserialize(b'{"x":1,"other":2}') == {"x": 1}
    with pytest.raises(SerdeError):
        checked.deserialize(b'{"x":"one"}')
    with pytest.raises(SerdeError):
        json().deserialize(b"{")


def test_a_python_type_stands_for_its_serde() -> None:
    assert serde_of(str) is STRING_SERDE
    assert serde_of(int) is LONG_SERDE
    assert serde_of(Point) == json(Point)
    assert serde_of(LONG_SERDE) is LONG_SERDE
    with pytest.raises(TypeError, match="says nothing of a serde"):
        serde_of("string")
