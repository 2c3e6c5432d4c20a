"""The nodes of a plan: frozen data, one for each thing that a topology does.

A node has a name, as Kafka Streams would generate it, the names of the nodes that feed it, and the schema of what comes
out. A plan is a tuple of nodes, each behind its inputs. Where Kafka Streams makes several processors of one operator (a
join of two streams is five), the node is one and holds the names of the others: a compiler wants the operator, a
description wants the processors (physical.py).

A function is an Expression or a Python callable; the callable's arguments are those of Kafka Streams' lambda.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from millstream.streams.types import ANY, DataType

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from millstream.streams.expressions.tree import Expression
    from millstream.streams.plan.aggregations import Aggregation
    from millstream.streams.plan.stores import KeyValueStore, Store, WindowStore
    from millstream.streams.serdes import Serde
    from millstream.streams.windows import JoinWindows, Windows

JoinKind = Literal["inner", "left", "outer"]


@dataclass(frozen=True)
class Schema:
    """The types of key and value behind a node."""

    key: DataType = ANY
    value: DataType = ANY
    windowed: bool = False

    def __str__(self) -> str:
        return f"{'windowed ' if self.windowed else ''}{self.key} -> {self.value}"


@dataclass(frozen=True, kw_only=True)
class Node:
    """What every node has."""

    name: str
    inputs: tuple[str, ...] = ()
    schema: Schema = Schema()


@dataclass(frozen=True, kw_only=True)
class StreamSource(Node):
    """Records of topics, as a stream.

    With a pattern its topics are known where the plan runs; whole names match it.
    """

    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    key_serde: Serde
    value_serde: Serde
    timestamp_of: Callable[[Any, Any, int], int] | None = None
    partitions: int | None = None


@dataclass(frozen=True, kw_only=True)
class TableNode(Node):
    """A node whose output is a table: changes of the value of a key."""

    # Whether a change carries the value that it replaces; decided by what is downstream.
    sends_old_values: bool = False


@dataclass(frozen=True, kw_only=True)
class TableSource(TableNode):
    """A topic read as a table."""

    source: str
    topic: str
    store: KeyValueStore
    materialized: bool = False
    partitions: int | None = None


@dataclass(frozen=True, kw_only=True)
class GlobalTableSource(Node):
    """A topic of which every instance holds all partitions."""

    source: str
    topic: str
    store: KeyValueStore


@dataclass(frozen=True, kw_only=True)
class Filter(Node):
    predicate: Expression | Callable[..., Any]
    negated: bool = False


@dataclass(frozen=True, kw_only=True)
class Map(Node):
    """New key and new value: a function (key, value) -> (key, value), or a column for each."""

    mapper: Callable[..., Any] | tuple[Expression, Expression]


@dataclass(frozen=True, kw_only=True)
class MapValues(Node):
    mapper: Expression | Callable[..., Any]
    with_key: bool = False


@dataclass(frozen=True, kw_only=True)
class FlatMap(Node):
    """A function (key, value) -> any number of (key, value)."""

    mapper: Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class FlatMapValues(Node):
    """A function, or a column that is an array: one record for each item."""

    mapper: Expression | Callable[..., Any]
    with_key: bool = False


@dataclass(frozen=True, kw_only=True)
class SelectKey(Node):
    selector: Expression | Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Peek(Node):
    """Calls `action(key, value)`; `last` if nothing comes out (foreach)."""

    action: Callable[[Any, Any], object]
    last: bool = False


@dataclass(frozen=True, kw_only=True)
class Branch(Node):
    """Each record goes to the first branch whose predicate holds; None holds always."""

    branches: tuple[tuple[str, Expression | Callable[..., Any] | None], ...]


@dataclass(frozen=True, kw_only=True)
class BranchChild(Node):
    """One branch."""


@dataclass(frozen=True, kw_only=True)
class Merge(Node):
    """Several streams as one."""


@dataclass(frozen=True, kw_only=True)
class Repartition(Node):
    """Through an internal topic, so that equal keys meet. The node's name is that of the source behind the topic.

    Records without key are dropped, unless all that is behind are joins that send them on without a partner (KIP-962).
    """

    topic: str
    sink: str
    filter: str
    key_serde: Serde
    value_serde: Serde
    partitions: int | None = None
    drops_null_keys: bool = True


@dataclass(frozen=True, kw_only=True)
class Sink(Node):
    """To a topic; a function (key, value) or a column chooses one for each record."""

    topic: str | Expression | Callable[..., Any]
    key_serde: Serde
    value_serde: Serde
    partitioner: Callable[[Any, Any, int], int | None] | None = None


@dataclass(frozen=True, kw_only=True)
class Process(Node):
    """A processor of the user's, with the stores that it may use."""

    supplier: Callable[[], Any]
    stores: tuple[str, ...] = ()
    keeps_key: bool = False


@dataclass(frozen=True, kw_only=True)
class ToTable(TableNode):
    """A stream read as the changes of a table."""

    store: KeyValueStore
    materialized: bool = False


@dataclass(frozen=True, kw_only=True)
class ToStream(Node):
    """A table's changes as a stream."""


@dataclass(frozen=True, kw_only=True)
class Aggregate(TableNode):
    """A stream grouped by its key and folded, whole or in windows."""

    aggregation: Aggregation
    store: Store
    windows: Windows | None = None
    emit_final: bool = False


@dataclass(frozen=True, kw_only=True)
class TableMerge(TableNode):
    """Several aggregations into the same store, as one table (cogroup)."""

    store: Store


@dataclass(frozen=True, kw_only=True)
class TableFilter(TableNode):
    predicate: Expression | Callable[..., Any]
    negated: bool = False
    store: KeyValueStore | None = None


@dataclass(frozen=True, kw_only=True)
class TableMapValues(TableNode):
    mapper: Expression | Callable[..., Any]
    with_key: bool = False
    store: KeyValueStore | None = None


@dataclass(frozen=True, kw_only=True)
class TableGroup(Node):
    """A table's changes under new keys, as what leaves a group and what enters one, through an internal topic.

    The node's name is that of the source behind the topic; groups of the same `group_by` share their `select`.
    """

    mapper: Callable[..., Any] | tuple[Expression, Expression]
    select: str
    topic: str
    sink: str
    key_serde: Serde
    value_serde: Serde


@dataclass(frozen=True, kw_only=True)
class TableAggregate(TableNode):
    """A grouped table, folded: what leaves is subtracted, what enters is added."""

    aggregation: Aggregation
    store: KeyValueStore


@dataclass(frozen=True, kw_only=True)
class Suppress(TableNode):
    """Holds changes back: until the window has closed (`final`), or for `wait_ms` of stream time."""

    wait_ms: int
    final: bool
    key_serde: Serde
    value_serde: Serde
    records_max: int | None = None
    shut_down_when_full: bool = False
    store_name: str


@dataclass(frozen=True, kw_only=True)
class StreamJoin(Node):
    """Two streams, joined by key within a window of time."""

    kind: JoinKind
    joiner: Expression | Callable[..., Any]
    with_key: bool
    windows: JoinWindows
    this_windowed: str
    other_windowed: str
    this_join: str
    other_join: str
    this_store: WindowStore
    other_store: WindowStore
    outer_store: KeyValueStore | None = None


@dataclass(frozen=True, kw_only=True)
class StreamTableJoin(Node):
    """Each record of a stream with the table's value at that time."""

    kind: JoinKind
    joiner: Expression | Callable[..., Any]
    with_key: bool = False


@dataclass(frozen=True, kw_only=True)
class StreamGlobalJoin(Node):
    """Each record of a stream with the value that a global table has for a key taken from the record."""

    kind: JoinKind
    selector: Expression | Callable[..., Any]
    joiner: Expression | Callable[..., Any]
    table: str
    with_key: bool = False


@dataclass(frozen=True, kw_only=True)
class TableJoin(TableNode):
    """Two tables with the same keys."""

    kind: JoinKind
    joiner: Expression | Callable[..., Any]
    with_key: bool
    this_join: str
    other_join: str
    store: KeyValueStore | None = None


@dataclass(frozen=True, kw_only=True)
class ForeignKeyJoin(TableNode):
    """A table joined to another by a key taken from its value, through a subscription and a response topic."""

    kind: JoinKind
    extractor: Expression | Callable[..., Any]
    joiner: Expression | Callable[..., Any]
    with_key: bool
    primary_key_serde: Serde
    primary_value_serde: Serde
    foreign_key_serde: Serde
    foreign_value_serde: Serde
    subscription_store: str
    names: tuple[tuple[str, str], ...]
    store: KeyValueStore
    materialized: bool = False

    def part(self, role: str) -> str:
        """The name of one of the processors that make up this join."""
        return dict(self.names)[role]


AnyNode = (
    StreamSource
    | TableSource
    | GlobalTableSource
    | Filter
    | Map
    | MapValues
    | FlatMap
    | FlatMapValues
    | SelectKey
    | Peek
    | Branch
    | BranchChild
    | Merge
    | Repartition
    | Sink
    | Process
    | ToTable
    | ToStream
    | Aggregate
    | TableMerge
    | TableFilter
    | TableMapValues
    | TableGroup
    | TableAggregate
    | Suppress
    | StreamJoin
    | StreamTableJoin
    | StreamGlobalJoin
    | TableJoin
    | ForeignKeyJoin
)
