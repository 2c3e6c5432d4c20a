"""Lines of a file or pipe, as they come.

A person's line, or a slow pipe's, must be sent at once; a file's lines should fill batches. So what has arrived is
cut into lines, and when nothing more is waiting the reader says so.
"""

from __future__ import annotations

import os
import select
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES = 256 * 1024


class Pause:
    """Nothing more is waiting at the moment: a good time to send."""


PAUSE: Final = Pause()


def read_lines(descriptor: int, delimiter: bytes = b"\n") -> Iterator[bytes | Pause]:
    """Every line without its delimiter; the last one also if it has none."""
    always_ready = stat.S_ISREG(os.fstat(descriptor).st_mode)
    rest = b""
    while chunk := os.read(descriptor, CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(delimiter)
        if delimiter == b"\n":
            lines = [line.removesuffix(b"\r") for line in lines]
        yield from lines
        if not always_ready and not select.select([descriptor], [], [], 0)[0]:
            yield PAUSE
    if rest:
        yield rest
