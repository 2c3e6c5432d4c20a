"""Queries that are started until they run.

Each streaming source is a Python of its own, and Spark gives it ten seconds to come up, which nothing can change. On a
busy machine that is too short at times. A query that died of it has done nothing yet, so it is started again: for two
minutes if all are late, and soon over if its Python is broken.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQueryManager

from millstream.spark.interrupts import held

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("millstream.spark")

STARTS = 12
PATIENCE_S = 60.0
_LOOK_S = 0.02
# What Spark says when the Python of a source was not there in time.
_NOT_THERE = ("failed to connect back", "CANNOT_OPEN_SOCKET", "Accept timed out")


def started(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """The query that `start` makes, once its sources are up or it has failed for a reason of its own.

    Who is interrupted meanwhile has no query to stop, so it is stopped here.
    """
    query: StreamingQuery | None = None
    try:
        with held() as interrupt:
            for attempt in range(1, STARTS + 1):
                query = start()
                ends = _Ends(query)
                failure = _failure(query, interrupt)
                if failure is None or attempt == STARTS or not any(sign in failure for sign in _NOT_THERE):
                    break
                ends.forget(query)
                reason = failure.partition("\n")[0]
                log.warning("query %s did not start, and is started again: %s", query.name or query.id, reason)
    except BaseException:
        if query is not None:
            with suppress(Exception):  # why it is stopped says more
                query.stop()
        raise
    assert query is not None
    return query


def _failure(query: StreamingQuery, interrupt: Callable[[], None]) -> str | None:
    """Why a query has failed, once it is known whether it has."""
    deadline = time.monotonic() + PATIENCE_S
    interrupt()
    while query.isActive and _is_undecided(query) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        interrupt()
    failure = None if query.isActive else query.exception()
    return None if failure is None else str(failure)


def _is_undecided(query: StreamingQuery) -> bool:
    """It starts; or it has failed, and counts as active until Spark has stopped its source."""
    message: str = query.status["message"]
    return message.startswith(("Initializing", "Terminated"))


class _Ends:
    """What `awaitAnyTermination` knows: of all queries of the session that have ended, the last that failed."""

    def __init__(self, query: StreamingQuery) -> None:
        java: Any = getattr(query, "_jsq", None)  # Spark Connect has none
        self._queries = None if java is None else StreamingQueryManager(java.sparkSession().streams())
        if self._queries is not None:
            last = self._last()
            self._is_first = last is None or str(query.runId) in last
            self._running = self._active()

    def forget(self, query: StreamingQuery) -> None:
        """Who waits for an end of any query shall not be told of an attempt that is repeated.

        Spark can only forget all ends at once. So nothing is forgotten where another query has ended too, since the
        last `resetTerminated`: whoever waits is to hear of that, if not in the right words.
        """
        if self._queries is None or not self._is_first or self._running - self._active() - {str(query.runId)}:
            return
        if str(query.runId) in (self._last() or ""):
            self._queries.resetTerminated()

    def _last(self) -> str | None:
        """The last failure; nothing if there was none, and None if no query has ended."""
        assert self._queries is not None
        try:
            return "" if self._queries.awaitAnyTermination(0.001) else None  # type: ignore[arg-type]  # it takes parts
        except StreamingQueryException as failure:
            return str(failure)

    def _active(self) -> set[str]:
        assert self._queries is not None
        return {str(each.runId) for each in self._queries.active}
