"""A properties file means what Java says it means."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.settings import SettingsError, parse_properties, render_properties

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1\nb: 2\nc 3\nd\n", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("# note\n! note\n\n  \t\n  a = 1 \n", {"a": "1 "}),
        ("a = 1,\\\n    2,\\\r\n  3\n", {"a": "1,2,3"}),
        ("a = 1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\=b\\:c\\ d = e", {"a=b:c d": "e"}),
        ("a=\\t\\n\\r\\f\\u00e9\\q", {"a": "\t\n\r\fé" + "q"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a : = b", {"a": "= b"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\\n# no comment inside\n", {"a": "1# no comment inside"}),
        ("a=1\\", {"a": "1"}),
        ("=x", {"": "x"}),
    ],
)
def test_a_file_is_read_as_java_reads_it(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text) == values


@given(st.dictionaries(TEXTS, TEXTS, max_size=5))
def test_what_is_written_is_read_back(values: dict[str, str]) -> None:
    assert parse_properties(render_properties(values)) == values


def test_a_broken_escape_is_named() -> None:
    with pytest.raises(SettingsError, match="four hexadecimal digits"):
        parse_properties("a=\\u12")


def test_letters_outside_of_ascii_survive() -> None:
    assert parse_properties(json.loads('"a=\\u00fc\\ud83d\\ude00"')) == {"a": "ü😀"}
