"""Which of Spark's masters are this one process, and how many cores they take.

`local-cluster[...]` is not among them: its executors are processes of their own, which can be lost.
"""

from __future__ import annotations

import os
import re
from typing import Final

_LOCAL: Final = re.compile(r"local(?:\[(\d+|\*)(?:,.*)?\])?")


def local_cores(master: str | None) -> int | None:
    """The cores of a local master; None for all others."""
    found = _LOCAL.fullmatch(master or "")
    if found is None:
        return None
    return os.cpu_count() or 1 if found[1] == "*" else int(found[1] or "1")
