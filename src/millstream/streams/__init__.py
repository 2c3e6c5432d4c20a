"""Streams: Kafka Streams' ideas as a Python DSL.

    from millstream.streams import StreamsBuilder, TopologyTestDriver, col, tumbling

    builder = StreamsBuilder()
    clicks = builder.stream("clicks", value=Click)
    clicks.filter(col("page") != "/health").group_by(col("user")).windowed_by(tumbling(60_000)).count()

dsl/ the verbs; expressions/ columns; windows.py, serdes.py, types.py what they speak of; plan/ the plan that they
build; interpret/ the test driver that runs it; application.py and lower/ run it on Spark. It imports no broker, and
Spark only when an application starts.
"""

from __future__ import annotations

from millstream.streams.application import Application
from millstream.streams.dsl.builder import StreamsBuilder
from millstream.streams.dsl.columns import avg_of, count_of, max_of, min_of, sum_of
from millstream.streams.dsl.grouped import KGroupedStream
from millstream.streams.dsl.grouped_table import KGroupedTable
from millstream.streams.dsl.stream import KStream
from millstream.streams.dsl.suppressed import Suppressed, until_time_limit, until_window_closes
from millstream.streams.dsl.table import GlobalKTable, KTable
from millstream.streams.errors import InputLost, NameCollision, NotCopartitioned, StateLost, TopologyError
from millstream.streams.expressions import (
    Expression,
    ExpressionError,
    coalesce,
    col,
    concat,
    function,
    greatest,
    key,
    least,
    left,
    lit,
    right,
    struct,
    timestamp,
    value,
    when,
    window_end,
    window_start,
)
from millstream.streams.interpret.driver import TopologyTestDriver
from millstream.streams.plan.stores import KeyValueStore, SessionStore, WindowStore
from millstream.streams.processors import ProcessorContext, PunctuationType, Record
from millstream.streams.serdes import (
    BYTES_SERDE,
    DOUBLE_SERDE,
    INT_SERDE,
    JSON_SERDE,
    LONG_SERDE,
    STRING_SERDE,
    Serde,
    SerdeError,
    json,
)
from millstream.streams.topology import Topology
from millstream.streams.windows import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    Window,
    Windowed,
    hopping,
    session,
    sliding,
    tumbling,
    within,
)

__all__ = [
    "BYTES_SERDE",
    "DOUBLE_SERDE",
    "INT_SERDE",
    "JSON_SERDE",
    "LONG_SERDE",
    "STRING_SERDE",
    "Application",
    "Expression",
    "ExpressionError",
    "GlobalKTable",
    "InputLost",
    "JoinWindows",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KeyValueStore",
    "NameCollision",
    "NotCopartitioned",
    "ProcessorContext",
    "PunctuationType",
    "Record",
    "Serde",
    "SerdeError",
    "SessionStore",
    "SessionWindows",
    "SlidingWindows",
    "StateLost",
    "StreamsBuilder",
    "Suppressed",
    "TimeWindows",
    "Topology",
    "TopologyError",
    "TopologyTestDriver",
    "Window",
    "WindowStore",
    "Windowed",
    "avg_of",
    "coalesce",
    "col",
    "concat",
    "count_of",
    "function",
    "greatest",
    "hopping",
    "json",
    "key",
    "least",
    "left",
    "lit",
    "max_of",
    "min_of",
    "right",
    "session",
    "sliding",
    "struct",
    "sum_of",
    "timestamp",
    "tumbling",
    "until_time_limit",
    "until_window_closes",
    "value",
    "when",
    "window_end",
    "window_start",
    "within",
]
