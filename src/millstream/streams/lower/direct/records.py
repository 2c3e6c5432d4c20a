"""What the driver reads and writes itself: a micro-batch's records, and what comes of them."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from millstream.arrow.encoding import Names
from millstream.arrow.schema import schema_of
from millstream.arrow.sources import split_by_topic
from millstream.arrow.writer import Writer
from millstream.client.produce import ALL_IN_SYNC
from millstream.spark.options import parse_read
from millstream.spark.ranges import Range
from millstream.spark.reading import read_range
from millstream.streams.lower.tasks.function import as_batch, collect_records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.sync import SyncClient
    from millstream.client.transactions import Transaction
    from millstream.records.codecs import Codec
    from millstream.streams.lower.sinking import Span
    from millstream.streams.lower.tasks.partition import Out

_COLUMNS: Final = schema_of(["topic", "partition", "offset", "key", "value", "timestamp", "headers"])
_NAMES: Final = Names("key", "value", "headers", "timestamp")


def read_records(span: Span, connection: Mapping[str, str], bytes_max: int) -> dict[int, list[Any]] | None:
    """A micro-batch's records by partition, as a task takes them: each topic's in order. None if they are more bytes.

    Offsets say how many records there are at most, but not how large they are: that shows while they are read, so there
    may be one answer of a broker more in memory than this.
    """
    options = parse_read(
        {
            **{f"kafka.{name}": value for name, value in connection.items()},
            "subscribe": ",".join(sorted({topic for topic, _ in span.ends})),
            "kafka.isolation.level": "read_committed",
        },
        streaming=True,
    )
    found: dict[int, list[Any]] = {}
    read_bytes = 0
    for (topic, index), end in sorted(span.ends.items()):
        start = span.starts.get((topic, index), 0)
        if start < end:
            batches: Any = read_range(Range(topic, span.ids[topic], index, start, end), _COLUMNS, options)
            with closing(batches):
                for batch in batches:
                    read_bytes += batch.nbytes
                    if read_bytes > bytes_max:
                        return None
                    collect_records(_in_milliseconds(batch), found)
    return found


def _in_milliseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    at = batch.schema.get_field_index("timestamp")
    return batch.set_column(at, "timestamp", pc.divide(batch.column(at).cast(pa.int64()), 1000))


def write_records(
    out: list[Out], client: SyncClient, transaction: Transaction | None, codec: Codec
) -> list[dict[str, Any]]:
    """Write them, in order, and wait; a row for each partition, as Spark's writer tasks give them."""
    if not out:
        return []
    writer = Writer(client, codec=codec, acks=ALL_IN_SYNC, partition_by="partition", transaction=transaction)
    for topic, rows in split_by_topic(as_batch(out)):
        writer.write(topic, rows, _NAMES)
    return [{"topic": topic, "partition": index, **each._asdict()} for (topic, index), each in writer.finish().items()]
