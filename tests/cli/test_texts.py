"""The small languages of the command line: formats, times, lists of settings, lines."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.cli.declare import UsageError
from millstream.cli.kafka.configs import split_configs
from millstream.cli.kafka.console_producer import LineReader
from millstream.cli.lines import Pause, read_lines
from millstream.cli.output import Rows, table
from millstream.cli.produce import unescape
from millstream.cli.times import parse_time_ms

NOW_MS = 1_790_000_000_000


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("now", NOW_MS),
        ("10m", NOW_MS - 600_000),
        ("2h ago", NOW_MS - 7_200_000),
        ("250ms", NOW_MS - 250),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T01:00:00+01:00", 0),
    ],
)
def test_times_are_read_as_people_write_them(text: str, expected_ms: int) -> None:
    assert parse_time_ms(text, NOW_MS) == expected_ms


@pytest.mark.parametrize("text", ["", "soon", "m", "10 parsecs", "2026-13-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_time_ms(text, NOW_MS)


def test_brackets_keep_commas_together() -> None:
    assert split_configs("a=1,b=[2,3],c=,d=x=y") == {"a": "1", "b": "2,3", "c": "", "d": "x=y"}
    with pytest.raises(UsageError):
        split_configs("a")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("plain", b"plain"), (r"\t", b"\t"), (r"\x1f\0", b"\x1f\x00"), ("é", "é".encode()), (r"é\n", "é\n".encode())],
)
def test_escapes_mean_what_they_mean_in_c(text: str, expected: bytes) -> None:
    assert unescape(text) == expected


@given(content=st.binary(max_size=200).map(lambda data: data.replace(b"\r", b"")))
def test_lines_of_a_pipe_are_all_there_and_in_order(content: bytes) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, content)
        os.close(writer)
        lines = [line for line in read_lines(reader) if not isinstance(line, Pause)]
    finally:
        os.close(reader)
    assert lines == (content[:-1] if content.endswith(b"\n") else content).split(b"\n") if content else lines == []


def test_a_line_is_taken_apart_as_kafkas_reader_does() -> None:
    reader = LineReader.of({"parse.key": "true", "parse.headers": "true", "null.marker": "~"})
    assert reader.read(b"a:1,b:~\tkey\tvalue", 1) == (b"key", b"value", [("a", b"1"), ("b", None)])
    assert reader.read(b"~\t~\t~", 2) == (None, None, [])
    with pytest.raises(UsageError, match="line number 3"):
        reader.read(b"a:1", 3)
    with pytest.raises(UsageError, match=r"parse\.kee"):
        LineReader.of({"parse.kee": "true"})


def test_a_table_aligns_numbers_to_the_right() -> None:
    rows = Rows(("topic", "log_bytes"), [("a", 5), ("longer", 12345)])
    assert table(rows) == "TOPIC   LOG BYTES\na               5\nlonger      12345\n"
