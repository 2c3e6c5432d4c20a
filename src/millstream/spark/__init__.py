"""Topics in Spark without a jar: a Data Source for PySpark, and a session that is set up for it.

    spark = millstream.spark.session()
    orders = spark.readStream.format("millstream").option("kafka.bootstrap.servers", servers).option("subscribe", ...)

The options and columns are those of Spark's own Kafka source and sink. On the driver: options.py what was asked for,
offsets.py where a query stands, planning.py topics and places to ranges, batch_reader.py and stream_reader.py. In the
executors' Python: reading.py and writer.py, whole Arrow batches on the client of clients.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.spark.exactly_once import start as start
    from millstream.spark.progress import expose as expose
    from millstream.spark.progress import watch as watch
    from millstream.spark.sessions import register as register
    from millstream.spark.sessions import session as session
    from millstream.spark.starting import started as started
    from millstream.spark.values import read_typed as read_typed
    from millstream.spark.values import typed as typed

__all__ = ["expose", "read_typed", "register", "session", "start", "started", "typed", "watch"]

# Loaded when asked for: executors, which import what they need by its own name, don't pay for the driver's part.
_HOMES = {
    "expose": "millstream.spark.progress",
    "read_typed": "millstream.spark.values",
    "register": "millstream.spark.sessions",
    "session": "millstream.spark.sessions",
    "start": "millstream.spark.exactly_once",
    "started": "millstream.spark.starting",
    "typed": "millstream.spark.values",
    "watch": "millstream.spark.progress",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
