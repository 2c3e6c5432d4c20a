"""Ctrl-C, held back while Spark's JVM is spoken to.

A signal in the middle of such a talk leaves an answer behind that the next question takes for its own, and where the
talk starts a query, the query runs and nobody has it. So the signal is noted, and handed to whoever handles it where
that is safe. A second one is not held: what is waited for may never come.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


@contextmanager
def held() -> Iterator[Callable[[], None]]:
    """Hold interrupts back for a block, which calls what it gets where one may come; one that is left comes at the end.

    Signals are the main thread's, and so are their handlers: in another thread there is nothing to hold.
    """
    theirs = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(theirs):
        yield lambda: None
        return
    noted: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append((number, frame))
        if len(noted) > 1:
            deliver()

    def deliver() -> None:
        if noted:
            last = noted[-1]
            noted.clear()
            theirs(*last)

    signal.signal(signal.SIGINT, note)
    try:
        yield deliver
    finally:
        # Unless the block has set a handler itself.
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, theirs)
    deliver()
