"""Topics as Arrow: read them as tables, follow them as record batches, write tables to them, at native speed.

    table = arrow.read("localhost:9092", "orders")

It is a Kafka client like any other, so it works with any broker. schema.py the columns, positions.py what to read,
reading.py and decoding.py from the log to Arrow, writing.py, encoding.py and routing.py the way back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.arrow.group_offsets import commit as commit
    from millstream.arrow.group_offsets import committed as committed
    from millstream.arrow.positions import Group as Group
    from millstream.arrow.reading import Stream as Stream
    from millstream.arrow.reading import read as read
    from millstream.arrow.reading import stream as stream
    from millstream.arrow.schema import SCHEMA as SCHEMA
    from millstream.arrow.writer import Written as Written
    from millstream.arrow.writing import Commit as Commit
    from millstream.arrow.writing import write as write

__all__ = ["SCHEMA", "Commit", "Group", "Stream", "Written", "commit", "committed", "read", "stream", "write"]

# Loaded when asked for: a new Python worker of Spark's that reads should not pay for what writes.
_HOMES = {
    "SCHEMA": "schema",
    "Commit": "writing",
    "Group": "positions",
    "Stream": "reading",
    "Written": "writer",
    "commit": "group_offsets",
    "committed": "group_offsets",
    "read": "reading",
    "stream": "reading",
    "write": "writing",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
