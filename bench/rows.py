"""What a row is: a name, a bar, and one measurement that is taken of each contender several times."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.contenders import APACHE_KAFKA, CLIENT_LIMIT, MILLSTREAM, STORE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bench.session import Session

# figure -> value, of one contender in one round
Figures = dict[str, float]


@dataclass(frozen=True)
class Bar:
    """What must hold: of the ratio Millstream / Apache Kafka, of Millstream's own figure, or of its share of the limit.

    The limit is the broker that only stores: one that keeps nothing is no broker, it shows where the client ends.
    """

    figure: str
    unit: str
    ratio_at_least: float | None = None
    ratio_at_most: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    of_limit_at_least: float | None = None

    def describe(self) -> str:
        words = []
        if self.ratio_at_least is not None:
            words.append(f">= {self.ratio_at_least:.3g}x")
        if self.ratio_at_most is not None:
            words.append(f"<= {self.ratio_at_most:.3g}x")
        if self.at_least is not None:
            words.append(f">= {self.at_least:,.7g} {self.unit}")
        if self.at_most is not None:
            words.append(f"<= {self.at_most:,.7g} {self.unit}")
        if self.of_limit_at_least is not None:
            words.append(f">= {self.of_limit_at_least:.3g} of the limit")
        return ", ".join(words)


@dataclass(frozen=True)
class Row:
    """One line or more of the table, from one measurement."""

    name: str
    title: str
    measure: Callable[[Session, str], Figures]
    bars: tuple[Bar, ...]
    rounds: int = 3
    contenders: tuple[str, ...] = (APACHE_KAFKA, MILLSTREAM)


@dataclass(frozen=True)
class Verdict:
    """A bar, the medians of both, and whether it holds."""

    row: str
    title: str
    bar: Bar
    apache_kafka: float | None
    millstream: float | None
    client_limit: float | None = None
    store_limit: float | None = None

    @property
    def ratio(self) -> float | None:
        if self.millstream is None or not self.apache_kafka:
            return None
        return self.millstream / self.apache_kafka

    @property
    def of_limit(self) -> float | None:
        """Millstream's share of what the broker makes that only stores."""
        if self.bar.of_limit_at_least is None or self.millstream is None or not self.store_limit:
            return None
        return self.millstream / self.store_limit

    @property
    def holds(self) -> bool | None:
        """None where a part of the bar was not measured, and the other parts hold."""
        bar = self.bar
        parts = [
            (self.ratio, bar.ratio_at_least, 1),
            (self.ratio, bar.ratio_at_most, -1),
            (self.millstream, bar.at_least, 1),
            (self.millstream, bar.at_most, -1),
            (self.of_limit, bar.of_limit_at_least, 1),
        ]
        wanted = [(value, limit, sign) for value, limit, sign in parts if limit is not None]
        if any(value is not None and (value - limit) * sign < 0 for value, limit, sign in wanted):
            return False
        return None if any(value is None for value, _, _ in wanted) else True


def judge(row: Row, rounds: Mapping[str, Sequence[Figures]]) -> list[Verdict]:
    """The row's verdicts from all rounds of each contender."""

    def median(contender: str, figure: str) -> float | None:
        values = [figures[figure] for figures in rounds.get(contender, ()) if figure in figures]
        return statistics.median(values) if values else None

    return [
        Verdict(
            row.name,
            row.title,
            bar,
            median(APACHE_KAFKA, bar.figure),
            median(MILLSTREAM, bar.figure),
            median(CLIENT_LIMIT, bar.figure),
            median(STORE_LIMIT, bar.figure),
        )
        for bar in row.bars
    ]
