"""The columns of a topic, named and typed as Spark's Kafka source has them.

A timestamp has milliseconds, as in the log, and is UTC. A record without headers has null there, as in Spark. The
type of a timestamp is 0 if the producer set it (CreateTime) and 1 if the broker did (LogAppendTime).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

HEADER: Final = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])

SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", pa.list_(HEADER)),
    ]
)


def schema_of(columns: str | Iterable[str] | None) -> pa.Schema:
    """The columns asked for, in that order; all of them for None."""
    if columns is None:
        return SCHEMA
    wanted = [columns] if isinstance(columns, str) else list(columns)
    unknown = [name for name in wanted if name not in SCHEMA.names]
    if unknown:
        raise ValueError(f"a topic has no column {unknown[0]!r}, it has {', '.join(SCHEMA.names)}")
    if len(wanted) != len(dict.fromkeys(wanted)):
        raise ValueError("a column is asked for twice")
    return pa.schema([SCHEMA.field(name) for name in wanted])
