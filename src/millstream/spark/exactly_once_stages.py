"""Whether the tasks that wrote a batch ran once, as Spark's own book of stages has it.

A stage that lost its shuffle files is run again, its tasks as first attempts: they cannot see that they are not. The
driver can look it up, in a book that a listener keeps from events. Events may be late, or thrown away where they come
too fast. But a first attempt that the book has as complete has run all tasks, and there is no second one: only that is
taken for an answer, and whatever cannot be known in time is refused like a second run, and the batch is done again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types

from millstream.spark.exactly_once_task import REFUSED, TaskRefused
from millstream.spark.masters import local_cores

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import Row

EVENTS_WITHIN_S: Final = 60.0
_LOOK_EVERY_S: Final = 0.005
_COMPLETE, _FAILED = "COMPLETE", "FAILED"


class _Attempt(NamedTuple):
    number: int
    status: str


def refuse_what_ran_again(context: SparkContext, written: list[Row], *, within_s: float = EVENTS_WITHIN_S) -> None:
    """Raise TaskRefused unless it is certain that the stages of these results ran once."""
    if local_cores(context.master) is not None:
        return  # in one process shuffle files are not lost without it
    deadline_s = time.monotonic() + within_s
    for stage in {row["stage"]: None for row in written}:
        while (attempt := _last_attempt(context, stage)) is None or attempt != (0, _COMPLETE):
            if attempt is not None and (attempt.number > 0 or attempt.status == _FAILED):
                raise TaskRefused(f"{REFUSED}, and stage {stage} was run more than once")
            if time.monotonic() >= deadline_s:
                raise TaskRefused(
                    f"{REFUSED}, and whether one ran again is not known: {within_s:g} s after stage {stage} Spark's "
                    "book of stages has no end of it (spark.ui.retainedStages is how many it remembers, "
                    "spark.scheduler.listenerbus.eventqueue.appStatus.capacity how many events may wait)"
                )
            time.sleep(_LOOK_EVERY_S)


def _last_attempt(context: SparkContext, stage: int) -> _Attempt | None:
    # Any: what Py4J gives has no types.
    book: Any = context._jsc.sc().statusStore()
    try:
        found = book.lastStageAttempt(stage)
    except Py4JJavaError:
        return None  # not there yet, or no longer
    return _Attempt(found.attemptId(), found.status().toString())
