"""Answers come out as they were sent, however the bytes arrive, each in memory of its own."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.protocol.answer_reader import AnswerReader, BadFrame

LARGEST = 50_000


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def feed(reader: AnswerReader, stream: bytes, sizes: list[int]) -> list[bytearray]:
    """Deliver `stream` in reads of the given sizes (the last one repeats)."""
    answers = []
    position = turn = 0
    while position < len(stream):
        space = reader.space()
        count = min(len(space), sizes[min(turn, len(sizes) - 1)], len(stream) - position)
        assert count > 0, "a reader always has room for more"
        space[:count] = stream[position : position + count]
        answers += reader.received(count)
        position += count
        turn += 1
    return answers


bodies_of_all_sizes = st.lists(
    st.one_of(st.binary(min_size=4, max_size=300), st.integers(15_000, LARGEST).map(lambda size: b"\x07" * size)),
    max_size=8,
)


@given(bodies=bodies_of_all_sizes, sizes=st.lists(st.integers(1, 40_000), min_size=1))
def test_answers_come_out_as_they_went_in(bodies: list[bytes], sizes: list[int]) -> None:
    assert feed(AnswerReader(LARGEST), framed(*bodies), sizes) == bodies


def test_an_answer_stays_what_it_is_while_the_next_is_read() -> None:
    reader = AnswerReader(LARGEST)
    (first,) = feed(reader, framed(b"first"), [100])
    (second,) = feed(reader, framed(b"second"), [100])
    assert (first, second) == (b"first", b"second")


def test_a_small_answer_takes_one_read_that_leaves_room() -> None:
    """A read that does not fill its buffer tells the loop that there is nothing more to read."""
    reader = AnswerReader(LARGEST)
    assert len(reader.space()) > 1_000
    stream = framed(b"x" * 1_000)
    reader.space()[: len(stream)] = stream
    assert reader.received(len(stream)) == [b"x" * 1_000]


@pytest.mark.parametrize("length", [-1, 0, 3, LARGEST + 1, 2**31 - 1])
def test_a_length_that_no_answer_has_is_refused(length: int) -> None:
    reader = AnswerReader(LARGEST)
    with pytest.raises(BadFrame) as refusal:
        feed(reader, struct.pack(">i", length) + b"GET / HTTP/1.1", [100])
    assert refusal.value.length == length
    assert len(reader.space()) > 0
