"""A Python worker of Spark's looks for garbage among what is new, and leaves its modules alone."""

from __future__ import annotations

import gc
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from pyspark import TaskContext

from millstream.spark import worker_memory
from millstream.spark.worker_memory import keep_what_is_loaded

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker_memory, "_modules_seen", 0)
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_a_driver_is_left_alone() -> None:
    keep_what_is_loaded()
    assert gc.get_freeze_count() == 0


def test_a_task_keeps_what_was_loaded_and_only_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "get", object)
    keep_what_is_loaded()
    kept = gc.get_freeze_count()
    assert kept > 0
    # So many that what others in this process let go of meanwhile makes no difference.
    made = [[] for _ in range(100_000)]  # type: ignore[var-annotated]
    keep_what_is_loaded()
    assert gc.get_freeze_count() < kept + len(made) // 2, "what tasks make is garbage one day"
    monkeypatch.setitem(sys.modules, "loaded_later", ModuleType("loaded_later"))
    keep_what_is_loaded()
    assert gc.get_freeze_count() > kept + len(made) // 2
