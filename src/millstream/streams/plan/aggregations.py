"""What an aggregation computes, as data.

Count, and Columns (sums, counts, minima, maxima of columns), are known by name, so Spark can compute them natively;
Reduce and Fold carry functions. An average is two Columns and a column over them, so that it can be continued, taken
back and merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.expressions.tree import Expression


@dataclass(frozen=True)
class Count:
    """How many records, as a bigint."""

    def __str__(self) -> str:
        return "count"


@dataclass(frozen=True)
class Reduce:
    """`reducer(aggregate, value)`; for tables `subtractor` takes a value back out."""

    reducer: Callable[[Any, Any], Any]
    subtractor: Callable[[Any, Any], Any] | None = None

    def __str__(self) -> str:
        return "reduce"


@dataclass(frozen=True)
class Fold:
    """`initializer()`, then `aggregator(key, value, aggregate)`; `merger(key, one, other)` joins two sessions."""

    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    subtractor: Callable[[Any, Any, Any], Any] | None = None
    merger: Callable[[Any, Any, Any], Any] | None = None

    def __str__(self) -> str:
        return "aggregate"


@dataclass(frozen=True)
class ColumnAggregate:
    """One function over a column: count, sum, min or max. Nulls are left out; `of` is None for count(*)."""

    function: str
    of: Expression | None = None

    def __str__(self) -> str:
        return f"{self.function}({'*' if self.of is None else self.of})"


@dataclass(frozen=True)
class Columns:
    """Several functions over columns. With one that has no name the aggregate is its value; otherwise a struct."""

    columns: tuple[tuple[str, ColumnAggregate], ...]

    @property
    def scalar(self) -> bool:
        return len(self.columns) == 1 and not self.columns[0][0]

    def __str__(self) -> str:
        return ", ".join(f"{call} AS {name}" if name else str(call) for name, call in self.columns)


Aggregation = Count | Reduce | Fold | Columns
