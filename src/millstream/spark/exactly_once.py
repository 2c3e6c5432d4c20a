"""A streaming query that writes to topics, exactly once.

    query = millstream.spark.start(rows, servers="localhost:9092", topic="totals", checkpoint="/data/totals")

Who reads `totals` with `read_committed` sees the result of each record of the source once, whatever fails in between.
The group that the source's offsets are committed to, in the same transactions, has the query's id for a name.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Final, Literal

from millstream.records.codecs import Codec
from millstream.spark.empty_batches import needed_ones_only
from millstream.spark.exactly_once_routing import Layout
from millstream.spark.exactly_once_sink import TRANSACTION_TIMEOUT_MS, Sink, options_of
from millstream.spark.starting import started

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from millstream.client.options import Bootstrap

Guarantee = Literal["exactly_once", "at_least_once"]
OutputMode = Literal["append", "update", "complete"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]

log = logging.getLogger("millstream.spark")

BYTES: Final = ("binary", "string")
HEADERS: Final = "array<struct<key:string,value:binary>>"
AVAILABLE_NOW: Final = "available_now"


def start(
    rows: DataFrame,
    *,
    servers: Bootstrap,
    checkpoint: str | PathLike[str],
    topic: str | None = None,
    guarantee: Guarantee = "exactly_once",
    output_mode: OutputMode = "append",
    trigger: str | Mapping[str, str | bool] | None = None,
    key: str | Column | None = "key",
    value: str | Column | None = "value",
    headers: str | Column | None = "headers",
    timestamp: str | Column | None = "timestamp",
    partition: str | Column | None = "partition",
    value_format: Literal["json"] | None = None,
    compression: Compression = "none",
    name: str | None = None,
    group: str | None = None,
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
) -> StreamingQuery:
    """Start a query that writes streaming rows to a topic.

    `servers` are bootstrap servers, in one text or a list, or a mapping under librdkafka's names (`kafka.` in front
    does no harm).
    `key`, `value`, `headers`, `timestamp` and `partition` are columns, by name or as expressions; those whose default
    name is not among the rows' columns are left out. With `value_format="json"` the value is an object of all columns
    that are not used otherwise. Without `topic` the column `topic` says where each row goes.
    `trigger` is a time between batches ("1 second"), "available_now", or what Spark's own `trigger` takes; without one
    a batch follows the other. `group` is a second consumer group to commit the source's offsets to, under a name that
    people know; whatever else is committed there does not disturb the query.
    Returns when the query's sources are up, which takes a second or two, or when it has failed.
    """
    if not rows.isStreaming:
        raise ValueError("these rows are not a stream: write them with rows.write.format('millstream')")
    if type(rows).__module__.startswith("pyspark.sql.connect"):
        raise TypeError(
            "exactly once needs a classic Spark session: through Spark Connect the checkpoint is out of reach"
        )
    if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() != "true":
        raise RuntimeError("PYSPARK_PIN_THREAD must be true: without it queries would take each other's transactions")
    if guarantee not in ("exactly_once", "at_least_once"):
        raise ValueError(f"guarantee is 'exactly_once' or 'at_least_once', not {guarantee!r}")
    parts = {"key": key, "value": value, "headers": headers, "timestamp": timestamp, "partition": partition}
    shaped = shape(rows, parts, topic=topic, value_format=value_format)
    layout = Layout(options_of(servers), topic, tuple(shaped.columns), _codec(compression))

    def begin() -> StreamingQuery:
        sink = Sink(
            layout,
            location=str(checkpoint),
            exactly_once=guarantee == "exactly_once",
            lag_group=group,
            transaction_timeout_ms=transaction_timeout_ms,
            spark_keeps_state=True,
        )
        writer = shaped.writeStream.foreachBatch(sink).outputMode(output_mode)
        writer = writer.option("checkpointLocation", str(checkpoint))
        if name is not None:
            writer = writer.queryName(name)
        with needed_ones_only(shaped, output_mode):
            query = _triggered(writer, trigger).start()
        threading.Thread(target=_close_after, args=(query, sink), name=f"after-{query.id}", daemon=True).start()
        return query

    return started(begin)


def _close_after(query: StreamingQuery, sink: Sink) -> None:
    """A program may start many queries, one after the other; none should leave its connections behind."""
    try:
        query.awaitTermination()
    except Exception:  # noqa: BLE001  # why it ended is for who waits for the query
        log.debug("query %s failed", query.id)
    sink.close()


def shape(
    rows: DataFrame, parts: Mapping[str, str | Column | None], *, topic: str | None, value_format: str | None
) -> DataFrame:
    """Only the columns that become records, under their own names and of the types that records have."""
    chosen: dict[str, Column] = {}
    used: list[str] = []
    for part, given in parts.items():
        if part == "value" and value_format is not None:
            continue
        column = _column(rows, part, given)
        if column is not None:
            chosen[part] = column
            used += [given] if isinstance(given, str) else []
    if topic is None:
        if "topic" not in rows.columns:
            raise ValueError(f"name a topic, or give each row one in a column 'topic'; there are {_names(rows)}")
        chosen["topic"] = rows["topic"]
        used.append("topic")
    if value_format is not None:
        chosen["value"] = _as_json(rows, used, value_format)
    if "value" not in chosen and "key" not in chosen:
        raise ValueError(f"there is neither a key nor a value to write: the rows have {_names(rows)}")
    shaped = rows.select(*[column.alias(part) for part, column in chosen.items()])
    _check_types(shaped)
    return shaped


def _column(rows: DataFrame, part: str, given: str | Column | None) -> Column | None:
    if given is None:
        return None
    if not isinstance(given, str):
        return given
    if given in rows.columns:
        return rows[_quoted(given)]
    if given == part:
        return None
    raise ValueError(f"there is no column {given!r} for the {part}, there are {_names(rows)}")


def _as_json(rows: DataFrame, used: list[str], value_format: str) -> Column:
    from pyspark.sql import functions as f

    if value_format != "json":
        raise ValueError(f"value_format is 'json' or left out, not {value_format!r}")
    left = [rows[_quoted(name)] for name in rows.columns if name not in used]
    if not left:
        raise ValueError("no column is left for the value")
    return f.to_json(f.struct(*left))


def _check_types(shaped: DataFrame) -> None:
    for field in shaped.schema.fields:
        kind = field.dataType.simpleString()
        if field.name in ("key", "value") and kind not in BYTES:
            hint = ", or say value_format='json'" if field.name == "value" else ""
            raise TypeError(f"the {field.name} is a {kind}, and a record holds bytes or text: cast it{hint}")
        if field.name == "headers" and kind != HEADERS:
            raise TypeError(f"headers are {HEADERS}, not {kind}")
        if field.name == "timestamp" and kind not in ("timestamp", "timestamp_ntz", "bigint"):
            raise TypeError(f"a record's time is a timestamp, or milliseconds as bigint, not {kind}")


def _triggered(writer: DataStreamWriter, trigger: str | Mapping[str, str | bool] | None) -> DataStreamWriter:
    if trigger is None:
        return writer
    if trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True)
    if isinstance(trigger, str):
        return writer.trigger(processingTime=trigger)
    return writer.trigger(**trigger)  # type: ignore[arg-type]  # Spark says what it takes


def _codec(compression: str) -> Codec:
    try:
        return Codec[compression.upper()]
    except KeyError:
        raise ValueError(f"there is no compression {compression!r}") from None


def _quoted(name: str) -> str:
    """A name with a dot in it, such as `sum(order.euros)`, would be looked for in a struct."""
    return f"`{name.replace('`', '``')}`"


def _names(rows: DataFrame) -> str:
    return ", ".join(map(repr, rows.columns))
