"""What goes from node to node: records as a DataFrame, and how their keys and values become bytes.

The columns are those that `to_sql` names: key and value, typed, and timestamp in milliseconds; besides headers, and
partition and offset of the record that they come from. A value that has no schema stays bytes: it can be passed on and
counted, not looked into. A windowed key is a struct of key and window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from millstream.streams.lower.native.pruning import TYPES
from millstream.streams.lower.native.serdes import decode, encode, is_native

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millstream.streams.serdes import Serde

COLUMNS = ("key", "value", "timestamp", "headers", "partition", "offset")


@dataclass(frozen=True)
class Flow:
    """Records behind a node. `raw_value` says that the value is still bytes, of whatever serde it was read with; `old`
    that there is a column with the value that a table's change replaces."""

    rows: DataFrame
    raw_value: bool = False
    windowed: bool = False
    old: bool = False

    def with_rows(self, rows: DataFrame) -> Flow:
        return replace(self, rows=rows)

    def with_columns(self, **columns: Column) -> Flow:
        return replace(self, rows=self.rows.withColumns(columns))


class Serdes(Protocol):
    """A node or a store that says how keys and values are read."""

    @property
    def key_serde(self) -> Serde: ...
    @property
    def value_serde(self) -> Serde: ...


def decoded(rows: DataFrame, serdes: Serdes, *, taken_apart: bool = False) -> Flow:
    """The records of topics, as far as Spark can read them; `taken_apart` says that the source has read the values."""
    from pyspark.sql import functions as f

    def column(name: str) -> Column:
        # What is not there nobody looks at (pruning.py).
        return f.col(name) if name in present else f.lit(None).cast(TYPES[name])

    present = set(rows.columns)
    raw = not is_native(serdes.value_serde)
    value = column("value") if raw or taken_apart else decode(column("value"), serdes.value_serde)
    shown = rows.select(
        decode(f.col("key"), serdes.key_serde).alias("key"),
        value.alias("value"),
        f.unix_millis("timestamp").alias("timestamp"),
        column("headers").alias("headers"),
        "partition",
        "offset",
    )
    return Flow(shown, raw_value=raw)


def written(flow: Flow, topic: str | Column, key_serde: Serde, value_serde: Serde) -> DataFrame:
    """As rows for the writer; the key decides on the partition."""
    from pyspark.sql import functions as f

    value = f.col("value") if flow.raw_value else encode(f.col("value"), value_serde)
    return flow.rows.select(
        (f.lit(topic) if isinstance(topic, str) else topic).alias("topic"),
        f.lit(None).cast("int").alias("partition"),
        encode(f.col("key"), key_serde).alias("key"),
        value.alias("value"),
        "timestamp",
        "headers",
    )
