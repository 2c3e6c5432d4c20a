"""Topic names: plain, short, no path, and distinct in metrics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.metadata.names import NAME_CHARACTERS_MAX, check_topic_name, find_collision
from millstream.protocol.errors import InvalidTopic

LEGAL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


@given(name=st.text(LEGAL, min_size=1, max_size=NAME_CHARACTERS_MAX).filter(lambda name: name not in {".", ".."}))
def test_letters_digits_dots_underscores_and_dashes_are_legal(name):
    check_topic_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a" * 250, "a b", "a/b", "../etc", "a\n", "ä", "ⅷ", "a\x00", "topic:1", "a,b", "a*"]
)
def test_everything_else_is_refused(name):
    with pytest.raises(InvalidTopic):
        check_topic_name(name)


@given(name=st.text(min_size=1).filter(lambda name: any(letter not in LEGAL for letter in name)))
def test_one_foreign_character_is_enough(name):
    with pytest.raises(InvalidTopic):
        check_topic_name(name)


def test_a_dot_and_an_underscore_look_the_same_in_metrics():
    assert find_collision("a.b", ["x", "a_b"]) == "a_b"
    assert find_collision("a_b", ["a.b"]) == "a.b"
    assert find_collision("a_b", ["a_b", "a-b", "a__b"]) is None
