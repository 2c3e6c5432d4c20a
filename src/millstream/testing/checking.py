"""Finds what cannot have happened: lost and doubled records, reads of aborted writes, torn transactions, and so on.

The anomalies are those that Jepsen's Kafka workload looks for, and a few more (facts about compaction, groups and marks
that only go forward). `check(history)` returns all of them; a correct broker gives an empty list, whatever was killed.

The final read is one more poll for each partition: what no reader may see must not stand there either.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from millstream.testing.cycles import find_cycle
from millstream.testing.history import Outcome, Polled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.testing.history import History, Place, Sent


class Kind(Enum):
    """What went wrong."""

    TWO_VALUES_AT_ONE_OFFSET = "two values at one offset"
    ONE_VALUE_AT_TWO_OFFSETS = "one value at two offsets"
    READ_OF_FAILED_WRITE = "a failed write was read"
    READ_OF_ABORTED_WRITE = "an aborted write was read"
    READ_OF_OWN_UNCOMMITTED_WRITE = "a transaction read what it had not committed"
    READ_OF_UNKNOWN_VALUE = "a value was read that was not written there"
    LOST = "an acknowledged value is lost"
    UNSEEN = "an acknowledged value is missing from the final read"
    SKIPPED = "a reader skipped an offset"
    WENT_BACK = "a reader went back"
    TORN = "a transaction is visible in part"
    CYCLE = "transactions depend on each other in a circle"
    COMMITTED_OFFSET_WENT_BACK = "a committed offset went back"
    TWO_OWNERS = "two members owned a partition in one generation"
    END_WENT_BACK = "the end of a partition went back"
    STUCK_STABLE_OFFSET = "the last stable offset stands still"
    NEWEST_VALUE_LOST = "compaction lost the newest value of a key"
    DELETED_VALUE_CAME_BACK = "a deleted value came back"


FINAL_READ = "the final read"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that cannot have happened."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.text}"


def check(history: History) -> list[Anomaly]:
    """All anomalies, in a stable order."""
    known = _Known(history)
    return [
        *_offsets_and_values(known),
        *_reads_of_bad_writes(known),
        *_lost_and_unseen(known),
        *_readers_positions(known),
        *_torn_transactions(known),
        *_cycles(known),
        *_groups(history),
        *_marks(history),
        *_compaction(known),
    ]


class _Known:
    """The history, indexed: what stood at which offset, by all accounts."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.writes: dict[str, Sent] = {sent.value: sent for sent in history.sent}
        self.values_at: dict[tuple[Place, int], dict[str, None]] = defaultdict(dict)
        self.offsets_of: dict[str, dict[tuple[Place, int], None]] = defaultdict(dict)
        self.read: dict[Place, dict[str, None]] = defaultdict(dict)
        self.highest_read: dict[Place, int] = {}
        self.standing: dict[Place, dict[str, int]] = {
            place: {value: offset for offset, value in records} for place, records in (history.final or {}).items()
        }
        """By partition and value: where the final read found it."""
        self.polls = [*history.polled, *_final_polls(history)]
        for sent in history.sent:
            if sent.outcome is Outcome.OK and sent.offset is not None:
                self._stands(sent.place, sent.offset, sent.value)
        for poll in self.polls:
            for place, offset, value in poll.records:
                self._seen(place, offset, value)

    def _stands(self, place: Place, offset: int, value: str) -> None:
        self.values_at[place, offset][value] = None
        self.offsets_of[value][place, offset] = None

    def _seen(self, place: Place, offset: int, value: str) -> None:
        self._stands(place, offset, value)
        self.read[place][value] = None
        self.highest_read[place] = max(self.highest_read.get(place, -1), offset)

    def ended(self, sent: Sent) -> Outcome:
        """Whether the write took effect: it was acknowledged, and its transaction committed."""
        if sent.outcome is not Outcome.OK or sent.transaction is None:
            return sent.outcome
        return self.history.transactions.get(sent.transaction, Outcome.UNKNOWN)

    def is_visible(self, value: str) -> bool:
        """Whether readers of committed records must be shown the value."""
        sent = self.writes.get(value)
        return sent is not None and self.ended(sent) is Outcome.OK

    def transaction_of(self, value: str) -> str | None:
        sent = self.writes.get(value)
        return None if sent is None else sent.transaction

    def offset_of(self, sent: Sent) -> int | None:
        """Where it stands: as its producer was answered, or else as it was read."""
        if sent.offset is not None:
            return sent.offset
        return next((offset for place, offset in self.offsets_of.get(sent.value, ()) if place == sent.place), None)


def _final_polls(history: History) -> Iterator[Polled]:
    for place, records in (history.final or {}).items():
        yield Polled(FINAL_READ, tuple((place, *record) for record in records), fresh=frozenset({place}))


def _offsets_and_values(known: _Known) -> Iterator[Anomaly]:
    for (place, offset), values in known.values_at.items():
        if len(values) > 1:
            yield Anomaly(Kind.TWO_VALUES_AT_ONE_OFFSET, f"{', '.join(values)} at {offset} of {place}")
    for value, offsets in known.offsets_of.items():
        sent = known.writes.get(value)
        if len(offsets) > 1 and (sent is None or sent.idempotent):
            yield Anomaly(Kind.ONE_VALUE_AT_TWO_OFFSETS, f"{value} at {', '.join(map(str, offsets))}")


def _reads_of_bad_writes(known: _Known) -> Iterator[Anomaly]:
    for poll in known.polls:
        for place, offset, value in poll.records:
            where = f"{value} at {offset} of {place} by {poll.reader}"
            sent = known.writes.get(value)
            if sent is None or sent.place != place:
                yield Anomaly(Kind.READ_OF_UNKNOWN_VALUE, where)
                continue
            if sent.outcome is Outcome.FAILED:
                yield Anomaly(Kind.READ_OF_FAILED_WRITE, where)
            aborted = known.history.transactions.get(sent.transaction or "") is Outcome.FAILED
            if poll.committed_only and aborted:
                yield Anomaly(Kind.READ_OF_ABORTED_WRITE, where)
            if poll.committed_only and poll.transaction is not None and poll.transaction == sent.transaction:
                yield Anomaly(Kind.READ_OF_OWN_UNCOMMITTED_WRITE, where)


def _lost_and_unseen(known: _Known) -> Iterator[Anomaly]:
    final = known.history.final
    for sent in known.history.sent:
        if known.ended(sent) is not Outcome.OK or sent.place[0] in known.history.compacted:
            continue
        if sent.value in known.read[sent.place]:
            if final is not None and sent.value not in known.standing.get(sent.place, ()):
                yield Anomaly(Kind.LOST, f"{sent.value} of {sent.place} was read once, and is gone")
        elif sent.offset is not None and sent.offset < known.highest_read.get(sent.place, -1):
            yield Anomaly(Kind.LOST, f"{sent.value} at {sent.offset} of {sent.place}")
        elif final is not None:
            yield Anomaly(Kind.UNSEEN, f"{sent.value} at {sent.offset} of {sent.place}")


def _readers_positions(known: _Known) -> Iterator[Anomaly]:
    """Inside a poll and from poll to poll, offsets go up, and nothing visible lies in between."""
    visible: dict[Place, list[int]] = defaultdict(list)
    for place, offset in sorted(known.values_at, key=lambda at: (at[0], at[1])):
        if any(known.is_visible(value) for value in known.values_at[place, offset]):
            visible[place].append(offset)
    positions: dict[tuple[str, Place], int] = {}
    for poll in known.polls:
        for place in poll.fresh:
            positions.pop((poll.reader, place), None)
        for place, offset, _ in poll.records:
            last = positions.get((poll.reader, place))
            if last is not None and offset <= last:
                yield Anomaly(Kind.WENT_BACK, f"{poll.reader} read {offset} of {place} after {last}")
            elif last is not None and place[0] not in known.history.compacted:
                passed = visible[place][bisect_right(visible[place], last) : bisect_left(visible[place], offset)]
                if passed:
                    text = f"{poll.reader} went from {last} to {offset} of {place} past {passed[:5]}"
                    yield Anomaly(Kind.SKIPPED, text)
            positions[poll.reader, place] = offset


def _torn_transactions(known: _Known) -> Iterator[Anomaly]:
    if known.history.final is None:
        return
    compacted = known.history.compacted
    shown = {value for values in known.standing.values() for value in values}
    parts: dict[str, list[Sent]] = defaultdict(list)
    for sent in known.history.sent:
        # A part that is missing from a compacted topic may have a newer value.
        if sent.transaction is not None and sent.outcome is Outcome.OK and sent.place[0] not in compacted:
            parts[sent.transaction].append(sent)
    for transaction, members in parts.items():
        seen = [sent.value for sent in members if sent.value in shown]
        if seen and len(seen) < len(members):
            missing = [sent.value for sent in members if sent.value not in shown]
            yield Anomaly(Kind.TORN, f"{transaction}: {seen} are there, {missing} are not")


def _cycles(known: _Known) -> Iterator[Anomaly]:
    """G0 and G1c: write order and write-read order between committed transactions must not form a circle."""
    edges: dict[str, dict[str, str]] = defaultdict(dict)
    for one, other, how in (*_writes_in_order(known), *_reads_of_others(known)):
        edges[one][other] = how
    cycle = find_cycle({node: tuple(targets) for node, targets in edges.items()})
    if cycle:
        steps = [f"{one} {edges[one][other]} {other}" for one, other in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
        yield Anomaly(Kind.CYCLE, "; ".join(steps))


def _writes_in_order(known: _Known) -> Iterator[tuple[str, str, str]]:
    """(transaction, the next one that wrote to the same partition, how that is known)."""
    last: dict[Place, str] = {}
    for place, offset in sorted(known.values_at):
        if place[0] in known.history.writes_cross:
            continue
        for value in known.values_at[place, offset]:
            writer = known.transaction_of(value)
            if writer is None or known.history.transactions.get(writer) is not Outcome.OK:
                continue
            before = last.get(place)
            if before is not None and before != writer:
                yield before, writer, f"wrote before it in {place}"
            last[place] = writer


def _reads_of_others(known: _Known) -> Iterator[tuple[str, str, str]]:
    """(transaction, another that has read what it wrote before it ended itself, how that is known)."""
    for poll in known.history.polled:
        if poll.transaction is None or known.history.transactions.get(poll.transaction) is not Outcome.OK:
            continue
        for _, _, value in poll.records:
            writer = known.transaction_of(value)
            if writer is not None and writer != poll.transaction:
                yield writer, poll.transaction, f"wrote {value}, which was read by"


def _groups(history: History) -> Iterator[Anomaly]:
    highest: dict[tuple[str, Place], int] = {}
    for commit in history.committed:
        key = (commit.group, commit.place)
        if commit.offset < highest.get(key, -1):
            text = f"{commit.group} on {commit.place}: {commit.offset} after {highest[key]}"
            yield Anomaly(Kind.COMMITTED_OFFSET_WENT_BACK, text)
        highest[key] = max(highest.get(key, -1), commit.offset)
    owners: dict[tuple[str, int, Place], str] = {}
    for owned in history.owned:
        first = owners.setdefault((owned.group, owned.generation, owned.place), owned.member)
        if first != owned.member:
            text = f"{owned.place} in generation {owned.generation} of {owned.group}: {first} and {owned.member}"
            yield Anomaly(Kind.TWO_OWNERS, text)


def _marks(history: History) -> Iterator[Anomaly]:
    highest: dict[Place, int] = {}
    for place, end in history.ends:
        if end < highest.get(place, -1):
            yield Anomaly(Kind.END_WENT_BACK, f"{place}: {end} after {highest[place]}")
        highest[place] = max(highest.get(place, -1), end)
    for place, (stable, end) in history.stable_ends.items():
        if stable < end:
            yield Anomaly(Kind.STUCK_STABLE_OFFSET, f"{place}: {stable} of {end}")


def _compaction(known: _Known) -> Iterator[Anomaly]:
    """Of each key, the newest write or a later one stands last in the final read; a tombstone may be gone by then."""
    if known.history.final is None:
        return
    keyed = [sent for sent in known.history.sent if sent.place[0] in known.history.compacted and sent.key is not None]
    # A tombstone whose outcome is not known may have taken its key's values away, and gone itself.
    perhaps_deleted = {_key_of(sent) for sent in keyed if sent.deletes and known.ended(sent) is Outcome.UNKNOWN}
    newest: dict[tuple[Place, str | None], tuple[int, Sent]] = {}
    last: dict[tuple[Place, str | None], int] = {}
    for sent in keyed:
        key, offset = _key_of(sent), known.offset_of(sent)
        if offset is not None and known.ended(sent) is Outcome.OK and (key not in newest or newest[key][0] < offset):
            newest[key] = (offset, sent)
        last[key] = max(last.get(key, -1), known.standing.get(sent.place, {}).get(sent.value, -1))
    for key, (offset, sent) in newest.items():
        standing = last[key]
        text = f"{sent.value} at {offset} is the newest of key {sent.key} in {sent.place}, the last is at {standing}"
        if sent.deletes and 0 <= standing < offset:
            yield Anomaly(Kind.DELETED_VALUE_CAME_BACK, text)
        elif not sent.deletes and standing < offset and (standing >= 0 or key not in perhaps_deleted):
            yield Anomaly(Kind.NEWEST_VALUE_LOST, text)


def _key_of(sent: Sent) -> tuple[Place, str | None]:
    return sent.place, sent.key
