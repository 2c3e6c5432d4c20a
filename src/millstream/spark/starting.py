"""Queries that are started until they run.

Each streaming source is a Python of its own, and Spark gives it ten seconds to come up, which nothing can change. On a
busy machine that is too short at times. A query that died of it has done nothing yet, so it is started again: for two
minutes if all are late, and soon over if its Python is broken.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

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
    """The query that `start` makes, once its sources are up or it has failed for a reason of its own."""
    for attempt in range(1, STARTS + 1):
        query = start()
        deadline = time.monotonic() + PATIENCE_S
        while query.isActive and _is_undecided(query) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        failure = None if query.isActive else query.exception()
        if failure is None or attempt == STARTS or not any(sign in str(failure) for sign in _NOT_THERE):
            break
        reason = str(failure).partition("\n")[0]
        log.warning("query %s did not start, and is started again: %s", query.name or query.id, reason)
    return query


def _is_undecided(query: StreamingQuery) -> bool:
    """It starts; or it has failed, and counts as active until Spark has stopped its source."""
    message: str = query.status["message"]
    return message.startswith(("Initializing", "Terminated"))
