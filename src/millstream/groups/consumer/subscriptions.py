"""Who of a group reads what, counted: by name, by pattern, and with which assignor.

The counts answer in constant time what each heartbeat asks: which topics the group reads, whether all members read the
same, which assignor most of them want.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from millstream.groups.assignors.java_order import grown_order, string_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.groups.consumer.member import ConsumerMember


class ResolvedPattern(NamedTuple):
    """The topics that a pattern matched, in which version of the metadata, and when it was looked up."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class Subscriptions:
    """The counts over all members of a group, and the patterns' topics."""

    def __init__(self) -> None:
        # By topic: how many members name it.
        self.names: Counter[str] = Counter()
        # By pattern: how many members have it.
        self.patterns: Counter[str] = Counter()
        self.resolved: dict[str, ResolvedPattern] = {}
        # By topic: how many patterns match it.
        self._matched: Counter[str] = Counter()
        self.assignors: Counter[str] = Counter()

    def replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """A member came, changed or went."""
        if old is not None:
            for topic in old.topics:
                _decrease(self.names, topic)
            if old.pattern:
                _decrease(self.patterns, old.pattern)
            if old.assignor is not None:
                _decrease(self.assignors, old.assignor)
        if new is not None:
            self.names.update(new.topics)
            if new.pattern:
                self.patterns[new.pattern] += 1
            if new.assignor is not None:
                self.assignors[new.assignor] += 1

    def resolve(self, pattern: str, resolved: ResolvedPattern | None) -> None:
        """A pattern was looked up, or is not in use any more."""
        known = self.resolved.pop(pattern, None)
        if known is not None:
            for topic in known.topics:
                _decrease(self._matched, topic)
        if resolved is not None:
            self.resolved[pattern] = resolved
            self._matched.update(resolved.topics)

    def copy(self) -> Subscriptions:
        """For working out what a change would make of them."""
        copied = Subscriptions()
        copied.names = self.names.copy()
        copied.patterns = self.patterns.copy()
        copied.resolved = self.resolved.copy()
        copied._matched = self._matched.copy()
        copied.assignors = self.assignors.copy()
        return copied

    # --- what they tell

    def topics(self) -> Iterator[str]:
        """Every topic that some member reads."""
        yield from self.names
        for topic in self._matched:
            if topic not in self.names:
                yield topic

    def __contains__(self, topic: str) -> bool:
        return topic in self.names or topic in self._matched

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """What one member reads, by name and by pattern."""
        resolved = self.resolved.get(member.pattern) if member.pattern else None
        return member.topics if resolved is None else member.topics | resolved.topics

    def are_equal(self, member_count: int) -> bool:
        """Whether all members read the same topics. "No" may be wrong where patterns and names match the same."""
        if not self.patterns:
            return all(count == member_count for count in self.names.values())
        # One pattern that everybody has, and no names beside it.
        return next(iter(self.patterns.values())) == member_count and all(
            self._matched[topic] == 1 and topic not in self.names for topic in self.topics()
        )

    def favourite_assignor(self) -> str | None:
        """The one that most members ask for; of several, the one that Kafka's map has first."""
        return max(grown_order(self.assignors, string_hash), key=self.assignors.__getitem__, default=None)

    def oldest_resolved(self) -> ResolvedPattern | None:
        """One of the looked-up patterns; all are looked up together."""
        return next(iter(self.resolved.values()), None)

    def drop_unused_patterns(self, patterns: Iterable[str]) -> list[str]:
        """Forget those of the patterns that nobody has any more; which they are."""
        unused = [pattern for pattern in patterns if pattern not in self.patterns]
        for pattern in unused:
            self.resolve(pattern, None)
        return unused


def _decrease(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]
