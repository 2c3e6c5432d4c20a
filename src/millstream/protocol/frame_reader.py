"""Cuts length-prefixed frames out of a byte stream without copying them, and without trusting their lengths.

An idle connection owns no buffer: reads go into a scratch buffer that all connections of a loop share, and only the
rest of an unfinished frame is moved into a buffer of the connection's own. That buffer grows with what has arrived,
never with what a length field promises, and is given back by `release_idle`.

A frame is a view that is valid until the next call of `settle`: whoever wants to keep bytes copies them.
"""

from __future__ import annotations

from struct import Struct

from millstream.protocol.errors import MalformedMessage

_LENGTH = Struct(">i")
_SMALLEST_OWN_BYTES = 4096
SCRATCH_BYTES = 256 * 1024


class FrameReader:
    """The receiving half of one connection."""

    __slots__ = ("_buffer", "_end", "_frame_bytes_max", "_own", "_scratch", "_start", "_view")

    def __init__(self, scratch: bytearray, frame_bytes_max: int) -> None:
        self._scratch = memoryview(scratch)
        self._own: bytearray | None = None
        self._buffer: bytearray = scratch
        self._view = self._scratch
        self._start = 0
        self._end = 0
        self._frame_bytes_max = frame_bytes_max

    def space(self) -> memoryview:
        """Where the next bytes shall be read into; never empty."""
        return self._view[self._end :] if self._end else self._view

    def received(self, count: int) -> None:
        self._end += count

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its length, or None if more bytes are needed."""
        start = self._start
        available = self._end - start
        if available < 4:
            return None
        length = self._length_at(start)
        if available - 4 < length:
            return None
        self._start = start + 4 + length
        return self._view[start + 4 : self._start]

    def _length_at(self, start: int) -> int:
        (length,) = _LENGTH.unpack_from(self._buffer, start)
        if length < 0 or length > self._frame_bytes_max:
            raise MalformedMessage(f"a frame of {length} bytes; the limit is {self._frame_bytes_max}")
        return int(length)

    def settle(self) -> None:
        """Call when all frames cut so far are done with, before the next `space`."""
        start, end = self._start, self._end
        rest = end - start
        self._start, self._end = 0, rest
        if rest == 0:
            return
        # What the frame still lacks; at least 1, so that `space` is never empty while reading pauses on whole frames.
        lacking = max(1, 4 + self._length_at(start) - rest) if rest >= 4 else _SMALLEST_OWN_BYTES
        if self._own is None or len(self._own) - rest < min(lacking, rest // 2 + 1):
            # Twice what has arrived at the most: a promise of 100 MB costs the one who makes it 50 MB of sending first.
            grown = bytearray(max(_SMALLEST_OWN_BYTES, rest + min(lacking, rest)))
            grown[:rest] = self._view[start:end]
            self._own = self._buffer = grown
            self._view = memoryview(grown)
        elif start:
            self._view[:rest] = self._view[start:end]

    def release_idle(self) -> None:
        """Go back to the shared scratch buffer if nothing is pending."""
        if self._own is not None and self._end == 0:
            self._own = None
            self._view = self._scratch
            self._buffer = self._scratch.obj  # type: ignore[assignment]  # the scratch is a bytearray

    @property
    def owned_bytes(self) -> int:
        return 0 if self._own is None else len(self._own)

    @property
    def pending_bytes(self) -> int:
        return self._end - self._start
