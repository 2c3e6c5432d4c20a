"""The trace: everything that happened in a simulation, as one hash.

Two runs of one seed are the same run if their hashes are equal. The last events are kept in words, for whoever has to
find out what led to a failure; all of them are printed where somebody asks for that.
"""

from __future__ import annotations

import sys
from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

LAST_EVENTS = 400
_HASHED_TOGETHER = 500


class Trace:
    """Events of one simulation, in order."""

    def __init__(self, loop: AbstractEventLoop, *, aloud: bool = False) -> None:
        self.events = 0
        self._last: deque[str] = deque(maxlen=LAST_EVENTS)
        self._time = loop.time
        self._unhashed: list[str] = []
        self._stamped_s, self._stamp_text = -1.0, ""
        self._hash = blake2b(digest_size=16)
        self._aloud = aloud

    def note(self, place: str, event: str) -> None:
        line = f"{self._stamp()} {place}: {event}"
        self.events += 1
        self._unhashed.append(line)
        if len(self._unhashed) >= _HASHED_TOGETHER:
            self._catch_up()
        self._last.append(line)
        if self._aloud:
            sys.stderr.write(line + "\n")

    def _stamp(self) -> str:
        """The time in words. Much happens in one moment, and writing down a number takes longer than the rest."""
        now_s = self._time()
        if now_s != self._stamped_s:
            self._stamped_s, self._stamp_text = now_s, f"{now_s:.6f}"
        return self._stamp_text

    def _catch_up(self) -> None:
        self._hash.update("".join(self._unhashed).encode())
        self._unhashed.clear()

    def remark(self, text: str) -> None:
        """Something worth reading that is no event of its own."""
        self._last.append(f"{self._stamp()} {text}")
        if self._aloud:
            sys.stderr.write(self._last[-1] + "\n")

    @property
    def last(self) -> list[str]:
        """The last events in words, the newest at the end."""
        return list(self._last)

    @property
    def digest(self) -> str:
        self._catch_up()
        return self._hash.hexdigest()
