"""A Python worker of Spark's looks for garbage among what is new, and leaves its modules alone."""

from __future__ import annotations

import gc
import sys
from types import ModuleType

from pyspark import TaskContext

from millstream.spark.worker_memory import keep_what_is_loaded
from tests.support.alone import run_alone


def kept_by_a_driver() -> int:
    keep_what_is_loaded()
    return gc.get_freeze_count()


def kept_by_a_task() -> tuple[int, int, int]:
    """Objects kept at first, after the task made 100,000 of them, and after a module was loaded as well."""
    TaskContext.get = object  # type: ignore[method-assign, assignment]
    keep_what_is_loaded()
    first = gc.get_freeze_count()
    made = [[] for _ in range(100_000)]  # type: ignore[var-annotated]
    keep_what_is_loaded()
    then = gc.get_freeze_count()
    sys.modules["loaded_later"] = ModuleType("loaded_later")
    keep_what_is_loaded()
    return first, then, gc.get_freeze_count() if made else 0


def test_a_driver_is_left_alone() -> None:
    assert run_alone(kept_by_a_driver) == 0


def test_a_task_keeps_what_was_loaded_and_only_that() -> None:
    first, then, later = run_alone(kept_by_a_task)
    assert first > 0
    assert then < first + 50_000, "what tasks make is garbage one day"
    assert later > first + 50_000
