"""Micro-batches without records, which Spark runs after others to let go of state: left out where they only cost time.

When a batch has moved the watermark, Spark runs another one at once, without any records, and a record that comes in
meanwhile waits for it: it doubles the latency of a count in windows. In append mode that batch brings out the windows
that have ended. In update mode all results are out already; old state goes with the next records' batch as well. Only
operators with timers of their own could still have something to say, so a query with one keeps its empty batches.

Spark has a setting for it, which a query takes from its session when it starts. So it is changed for that moment.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

SETTING: Final = "spark.sql.streaming.noDataMicroBatches.enabled"
_TIMERS: Final = re.compile(r"GroupsWithState|GroupsInPandasWithState|TransformWithState")
_starting: Final = threading.Lock()


@contextmanager
def needed_ones_only(rows: DataFrame, output_mode: str) -> Iterator[None]:
    """Around the start of a query that writes these rows."""
    conf = rows.sparkSession.conf
    # Whoever needs the empty ones waits too: the session's setting may be changed for another query at this moment.
    with _starting:
        if output_mode != "update" or _has_timers(rows):
            yield
            return
        before = conf.get(SETTING) or "true"
        conf.set(SETTING, "false")
        try:
            yield
        finally:
            conf.set(SETTING, before)


def _has_timers(rows: DataFrame) -> bool:
    # Any: what Py4J gives has no types.
    found: Any = rows
    return _TIMERS.search(found._jdf.queryExecution().analyzed().toString()) is not None
