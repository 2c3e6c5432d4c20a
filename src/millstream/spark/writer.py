"""Rows to topics, at least once: a task has written its rows when the brokers have acknowledged all of them.

A task that is run again writes them again; what it sends twice itself, after a lost connection, is recognised by the
brokers and written once. Exactly once is another way, see exactly_once.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from millstream.spark.options import WriteOptions


@dataclass
class Wrote(WriterCommitMessage):
    """What a task tells the driver."""

    records: int


class BatchWriter(DataSourceArrowWriter):
    """For `df.write`."""

    def __init__(self, options: WriteOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Wrote:
        return write_rows(iterator, self._columns, self._options)


class StreamWriter(DataSourceStreamArrowWriter):
    """For `df.writeStream`."""

    def __init__(self, options: WriteOptions, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Wrote:
        return write_rows(iterator, self._columns, self._options)


def write_rows(batches: Iterator[pa.RecordBatch], columns: Sequence[str], options: WriteOptions) -> Wrote:
    """All rows of a task, in their order."""
    from millstream.arrow.encoding import Names
    from millstream.arrow.routing import STICKY
    from millstream.arrow.sources import split_by_topic
    from millstream.arrow.writer import BATCH_BYTES, Writer
    from millstream.records.codecs import Codec
    from millstream.spark.clients import client_for, let_go
    from millstream.spark.worker_memory import keep_what_is_loaded

    parts = {name: name if name in columns else None for name in ("key", "value", "headers", "timestamp")}
    names = Names(**parts)
    writer: Writer | None = None
    try:
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if writer is None:
                # A task without rows needs no producer.
                writer = Writer(
                    client_for(options.connection),
                    codec=Codec[options.compression.upper()],
                    acks=options.acks,
                    partition_by="partition" if "partition" in columns else STICKY,
                    batch_bytes=BATCH_BYTES if options.batch_bytes is None else options.batch_bytes,
                )
            for topic, rows in [(options.topic, batch)] if options.topic is not None else split_by_topic(batch):
                writer.write(topic, rows, names)
        written = {} if writer is None else writer.finish()
    except BaseException:
        if writer is not None:
            writer.give_up()
            let_go(options.connection)
        raise
    keep_what_is_loaded()
    return Wrote(sum(each.records for each in written.values()))
