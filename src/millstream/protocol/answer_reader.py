"""Cuts answers out of a byte stream, for the end that asked: each is a buffer of its own, which a message may keep.

A small answer arrives in one read. So reads go into a scratch buffer that is larger than most answers, and what is
there is copied out; only what is larger is read straight into its own buffer, whose size the peer has announced. (One
read for the length and one for the rest cost a follower of a quiet partition three system calls for every record.)
"""

from __future__ import annotations

from struct import Struct

from millstream.protocol.errors import MalformedMessage

_LENGTH = Struct(">i")
_SCRATCH_BYTES = 16 * 1024
# There is a correlation id in each.
_SMALLEST_BYTES = 4


class BadFrame(MalformedMessage):
    """A length that no answer can have; nothing can be read from this stream any more."""

    def __init__(self, length: int) -> None:
        super().__init__(f"a frame of {length} bytes")
        self.length = length


class AnswerReader:
    """The receiving half of one connection, whose peer is believed up to a limit."""

    __slots__ = ("_end", "_frame", "_frame_bytes_max", "_frame_end", "_scratch")

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._end = 0
        self._frame: bytearray | None = None
        self._frame_end = 0

    def space(self) -> memoryview:
        """Where the next bytes shall be read into; never empty."""
        if self._frame is not None:
            return memoryview(self._frame)[self._frame_end :]
        return self._scratch[self._end :] if self._end else self._scratch

    def received(self, count: int) -> list[bytearray]:
        """The answers that are complete with these bytes, without their lengths."""
        frame = self._frame
        if frame is None:
            self._end += count
            return self._from_scratch()
        self._frame_end += count
        if self._frame_end < len(frame):
            return []
        self._frame = None
        return [frame]

    def _from_scratch(self) -> list[bytearray]:
        scratch, start, end = self._scratch, 0, self._end
        answers: list[bytearray] = []
        # A stream that is refused below may be read once more before its transport is closed: from the beginning.
        self._end = 0
        while end - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(scratch, start)
            if not _SMALLEST_BYTES <= length <= self._frame_bytes_max:
                raise BadFrame(length)
            start += _LENGTH.size
            if end - start < length:
                self._begin(length, scratch[start:end])
                return answers
            answers.append(bytearray(scratch[start : start + length]))
            start += length
        scratch[: end - start] = scratch[start:end]
        self._end = end - start
        return answers

    def _begin(self, length: int, first: memoryview) -> None:
        self._frame = bytearray(length)
        self._frame[: len(first)] = first
        self._frame_end = len(first)
