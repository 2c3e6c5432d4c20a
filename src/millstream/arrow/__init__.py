"""Topics as Arrow: read them as tables, follow them as record batches, write tables to them, at native speed.

    table = arrow.read("localhost:9092", "orders")

It is a Kafka client like any other, so it works with any broker. schema.py the columns, positions.py what to read,
reading.py and decoding.py from the log to Arrow, writing.py, encoding.py and routing.py the way back.
"""

from __future__ import annotations

from millstream.arrow.group_offsets import commit, committed
from millstream.arrow.positions import Group
from millstream.arrow.reading import Stream, read, stream
from millstream.arrow.schema import SCHEMA
from millstream.arrow.writer import Written
from millstream.arrow.writing import Commit, write

__all__ = ["SCHEMA", "Commit", "Group", "Stream", "Written", "commit", "committed", "read", "stream", "write"]
