"""Ends a try of a batch as soon as one of its tasks has failed, where Spark speculates.

A second attempt of a writer task may be a copy of one that still runs, which Spark ends when the original is done, or
the successor of one that failed. The task cannot tell, so it waits before it refuses. For a successor that wait is in
vain, and Spark makes several of them: longer than a transaction may take. The driver can tell, from Spark's book of
stages: there a copy that was ended does not count as failed. So it looks, and cancels what can only be refused.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from millstream.spark.exactly_once_task import REFUSED, TaskRefused

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from pyspark import SparkContext

    from millstream.client.transactions import Transaction

LOOK_EVERY_S: Final = 0.5


class FailureWatch:
    """Around the job that writes a batch."""

    def __init__(self, context: SparkContext, transaction: Transaction) -> None:
        self._context = context
        # An epoch is used for one try: under the same name Spark would show what failed in the one before.
        name = f"{transaction.id}-{transaction.producer.id}-{transaction.producer.epoch}"
        self._tag = f"millstream-{name}"
        self._over = threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._look, name=f"watch-{name}", daemon=True)

    def __enter__(self) -> Self:
        self._context.addJobTag(self._tag)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._context.removeJobTag(self._tag)
        if raised is not None and self._failed:
            raise TaskRefused(f"{REFUSED}, and one has failed") from raised

    def _look(self) -> None:
        # Any: what Py4J gives has no types.
        context: Any = self._context
        tracker: Any = context._jsc.sc().statusTracker()
        while not self._over.wait(LOOK_EVERY_S):
            if any(_has_failed(tracker, job) for job in tracker.getJobIdsForTag(self._tag)):
                self._failed = True
                self._context.cancelJobsWithTag(self._tag)
                return


def _has_failed(tracker: Any, job: int) -> bool:
    """Whether a writer task has: they are in a job's last stage, and in those before a task may well run again."""
    found = tracker.getJobInfo(job)
    stages = list(found.get().stageIds()) if found.isDefined() else []
    info = tracker.getStageInfo(max(stages)) if stages else None
    return info is not None and info.isDefined() and info.get().numFailedTasks() > 0
