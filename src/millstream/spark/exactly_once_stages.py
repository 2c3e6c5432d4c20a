"""Whether the tasks that wrote a batch ran once, as Spark's own book of stages has it.

A stage that lost its shuffle files is run again, its tasks as first attempts: they cannot see that they are not. The
driver can look it up, in a book that a listener keeps from events. So the events must have arrived, none may have been
thrown away on the way there, and the stage must be in the book: whatever cannot be known is refused like a second run,
and the batch is done again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types

from millstream.spark.exactly_once_task import REFUSED, TaskRefused
from millstream.spark.masters import local_cores

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import Row

EVENTS_WITHIN_MS: Final = 60_000
# Events that came too fast for the listener that keeps the book.
_THROWN_AWAY: Final = "queue.appStatus.numDroppedEvents"


class StageBook:
    """Opened before the job that writes a batch, read after it."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        # In one process shuffle files are not lost without it, so there is nothing to look up.
        self._needed = local_cores(context.master) is None
        self._thrown_away = self._count_thrown_away() if self._needed else 0

    def refuse_what_ran_again(self, written: list[Row]) -> None:
        """Raise TaskRefused unless it is certain that the stages of these results ran once."""
        if not self._needed:
            return
        try:
            self._bus().waitUntilEmpty(EVENTS_WITHIN_MS)
        except Py4JJavaError as error:
            raise TaskRefused(
                f"{REFUSED}, and whether one ran again is not known: Spark's listeners are more than "
                f"{EVENTS_WITHIN_MS} ms behind"
            ) from error
        if self._count_thrown_away() != self._thrown_away:
            raise TaskRefused(
                f"{REFUSED}, and whether one ran again is not known: Spark has thrown away events "
                "(spark.scheduler.listenerbus.eventqueue.appStatus.capacity is how many may wait)"
            )
        tracker = self._context.statusTracker()
        for stage in {row["stage"]: None for row in written}:
            info = tracker.getStageInfo(stage)
            if info is None:
                raise TaskRefused(
                    f"{REFUSED}, and whether one ran again is not known: Spark has forgotten stage {stage} "
                    "(spark.ui.retainedStages is how many it remembers)"
                )
            if info.currentAttemptId > 0:
                raise TaskRefused(f"{REFUSED}, and stage {stage} was run {info.currentAttemptId + 1} times")

    # Any: what Py4J gives has no types.
    def _bus(self) -> Any:
        return self._context._jsc.sc().listenerBus()

    def _count_thrown_away(self) -> int:
        found: int = self._bus().metrics().metricRegistry().counter(_THROWN_AWAY).getCount()
        return found
