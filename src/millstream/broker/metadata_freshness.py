"""How fresh a follower's metadata is for certain: it has everything that was committed at a certain time.

The leader's answer to a fetch tells its high watermark, which is at least what it was when the fetch was sent; as soon
as the image has come that far, it holds all that was committed then. A leader that was just elected may not know its
own high watermark yet, so the image must also hold a record of the epoch that the answer came from: what was committed
in earlier epochs comes before that one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

NEVER_MS = -1


class _Awaited(NamedTuple):
    epoch: int
    end_offset: int
    sent_ms: int


class MetadataFreshness:
    """`position` tells the epoch and the end offset of what this node has replayed."""

    def __init__(self, position: Callable[[], tuple[int, int]]) -> None:
        self._position = position
        self._as_of_ms = NEVER_MS
        self._awaited: _Awaited | None = None

    def fetched(self, epoch: int, high_watermark: int, sent_ms: int) -> None:
        """The leader of that epoch has answered the fetch that was sent at `sent_ms`."""
        self._settle()
        # One that is still awaited stays: whoever is always a little behind would never arrive at the newest.
        if self._awaited is None or self._awaited.epoch != epoch:
            self._awaited = _Awaited(epoch, high_watermark, sent_ms)
            self._settle()

    def as_of_ms(self) -> int:
        """Everything that was committed then is in the image."""
        self._settle()
        return self._as_of_ms

    def _settle(self) -> None:
        if self._awaited is not None:
            epoch, end_offset = self._position()
            if epoch >= self._awaited.epoch and end_offset >= self._awaited.end_offset:
                self._as_of_ms = max(self._as_of_ms, self._awaited.sent_ms)
                self._awaited = None
