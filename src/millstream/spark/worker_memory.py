"""What a Python worker has loaded stays out of its garbage collections.

Spark keeps its Python workers, and has them collect all garbage after each task: every object that the process has is
looked at. Nearly all of them are of modules (PySpark, pyarrow, this package), which never go away. For a task that
wrote one record this took 45 ms of processor time, most of what it took in all, and the next micro-batch waited for it.
"""

from __future__ import annotations

import gc
import sys

_modules_seen = 0


def keep_what_is_loaded() -> None:
    """At the end of a task's work: if something was loaded since the last time, nobody needs to look at it again."""
    from pyspark import TaskContext

    global _modules_seen  # noqa: PLW0603  # of the process, as the garbage is
    # A driver's memory is its program's business.
    if TaskContext.get() is not None and len(sys.modules) > _modules_seen:
        _modules_seen = len(sys.modules)
        # What is garbage by now must not be kept with the rest.
        gc.collect()
        gc.freeze()
