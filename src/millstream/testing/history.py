"""What clients did and saw, as data. `checking.py` says what cannot have happened on a correct broker.

Producers write values that occur once and note how each write ended; consumers note what they got. Nothing here knows a
broker: the same history can come from Millstream, from Apache Kafka, or from a test's own hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

Place = tuple[str, int]
"""(topic, partition)"""


class Outcome(Enum):
    """How an operation ended, as far as its client knows."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sent:
    """One value that a producer tried to write. The offset is known where the broker gave it."""

    value: str
    place: Place
    outcome: Outcome
    offset: int | None = None
    transaction: str | None = None
    idempotent: bool = True
    key: str | None = None
    deletes: bool = False
    """A tombstone. Its value on the wire is null, so a header carries the value that stands for it here."""


@dataclass(frozen=True, slots=True)
class Polled:
    """What one poll brought, in its order. `fresh` says that the reader's position was set anew before it: its first
    poll, a seek, a rebalance. `committed_only` is isolation.level=read_committed. `transaction` is the one that this
    read is a part of: it was open then, and what it writes follows from what it has read."""

    reader: str
    records: tuple[tuple[Place, int, str], ...]
    fresh: frozenset[Place] = frozenset()
    committed_only: bool = True
    transaction: str | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """A group's offset, as its commit was acknowledged or as a later fetch showed it."""

    group: str
    place: Place
    offset: int


@dataclass(frozen=True, slots=True)
class Owned:
    """A member believed to own a partition in a generation."""

    group: str
    generation: int
    place: Place
    member: str


@dataclass(slots=True)
class History:
    """Everything, each list in the order of events."""

    sent: list[Sent] = field(default_factory=list)
    polled: list[Polled] = field(default_factory=list)
    transactions: dict[str, Outcome] = field(default_factory=dict)
    """How each transaction ended: OK is committed, FAILED aborted."""
    committed: list[Committed] = field(default_factory=list)
    owned: list[Owned] = field(default_factory=list)
    ends: list[tuple[Place, int]] = field(default_factory=list)
    """ListOffsets(latest), in the order in which it was asked."""
    final: dict[Place, tuple[tuple[int, str], ...]] | None = None
    """A read of everything when nothing is written any more, with isolation.level=read_committed: (offset, value) of
    each partition in the order in which they came. None if there was none. It is judged like every other read."""
    stable_ends: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """(last stable offset, end of the log) of each partition when all transactions had ended, or had had the time."""
    compacted: frozenset[str] = frozenset()
    """Topics where only the newest value of each key has to be there."""
    writes_cross: frozenset[str] = frozenset()
    """Topics with partitions to which several transactions wrote at the same time. Kafka isolates no writes, so these
    stand in any order, and only reads say which came first."""
    newest_epochs: dict[Place, int] = field(default_factory=dict)
    """The newest leader epoch that a client has seen. What an older leader says of the end is no news: it may be cut
    off from the others and not know it."""
