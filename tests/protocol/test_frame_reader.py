"""Frames are cut as they were sent, however the bytes arrive, and no length is believed before its bytes are there."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.protocol.errors import MalformedMessage
from millstream.protocol.frame_reader import FrameReader


def feed(reader: FrameReader, stream: bytes, sizes: list[int]) -> list[bytes]:
    """Deliver `stream` in reads of the given sizes (the last one repeats); the frames that came out."""
    frames = []
    position = 0
    turn = 0
    while position < len(stream):
        space = reader.space()
        count = min(len(space), sizes[min(turn, len(sizes) - 1)], len(stream) - position)
        assert count > 0, "a reader always has room for more"
        space[:count] = stream[position : position + count]
        reader.received(count)
        position += count
        turn += 1
        while (frame := reader.next_frame()) is not None:
            frames.append(bytes(frame))
        reader.settle()
    return frames


@given(
    bodies=st.lists(st.binary(max_size=3000), max_size=20),
    sizes=st.lists(st.integers(1, 5000), min_size=1),
    scratch=st.sampled_from([16, 64, 4096]),
)
def test_frames_come_out_as_they_went_in(bodies: list[bytes], sizes: list[int], scratch: int) -> None:
    stream = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    assert feed(FrameReader(bytearray(scratch), 10_000), stream, sizes) == bodies


@given(bodies=st.lists(st.binary(max_size=300), min_size=2, max_size=20), pause_after=st.integers(1, 5))
def test_frames_wait_while_nobody_takes_them(bodies: list[bytes], pause_after: int) -> None:
    reader = FrameReader(bytearray(8192), 10_000)
    stream = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    reader.space()[: len(stream)] = stream
    reader.received(len(stream))
    taken: list[bytes] = []
    while len(taken) < len(bodies):
        for _ in range(pause_after):
            frame = reader.next_frame()
            if frame is not None:
                taken.append(bytes(frame))
        reader.settle()
        assert len(reader.space()) > 0
    assert taken == bodies


@pytest.mark.parametrize("length", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_length_outside_of_the_limit_is_refused_at_once(length: int) -> None:
    reader = FrameReader(bytearray(64), 1000)
    reader.space()[:4] = struct.pack(">i", length)
    reader.received(4)
    with pytest.raises(MalformedMessage, match="the limit is 1000"):
        reader.next_frame()


def test_a_promise_of_a_large_frame_takes_no_memory() -> None:
    """Bug 56, CVE-2022-34917: what is said of a size is not believed before the bytes are there."""
    reader = FrameReader(bytearray(64), 100_000_000)
    feed(reader, struct.pack(">i", 99_999_999) + b"x" * 1000, [64])
    assert reader.owned_bytes <= 4096


def test_an_idle_reader_owns_nothing() -> None:
    reader = FrameReader(bytearray(64), 100_000)
    feed(reader, struct.pack(">i", 50_000) + b"x" * 50_000, [64])
    assert reader.owned_bytes >= 50_000
    reader.release_idle()
    assert reader.owned_bytes == 0
    assert feed(reader, struct.pack(">i", 3) + b"abc", [64]) == [b"abc"]
