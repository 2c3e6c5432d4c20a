"""Patterns of topics: which topics are behind them is found out beside the heartbeat that asks, and stored.

A new pattern changes nothing by itself: the heartbeat is answered, the topics are looked up in a decision of its own
(at the loop's next turn; Kafka uses a thread), and if they are others than before, the group enters a new epoch. All
patterns of a group are looked up together: when a new one came, when topics were created since, and otherwise now and
then, because what the member may see of topics can change. Between two look-ups pass at least ten seconds, as in Kafka.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from millstream.groups.consumer.records import pattern_record, pattern_tombstone
from millstream.groups.consumer.step import Lookup, Step
from millstream.groups.consumer.subscriptions import ResolvedPattern
from millstream.groups.regex import check_pattern, matching
from millstream.replicated import Decision
from millstream.settings import GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.consumer.group import ConsumerGroup
    from millstream.groups.consumer.member import ConsumerMember
    from millstream.groups.machine import GroupMachine
    from millstream.metadata.image import Topics

LOOKUP_INTERVAL_MS = 10_000


class PatternChange(Enum):
    """What a heartbeat did to its member's pattern."""

    NONE = "none"
    # It has another one, whose topics are not known yet.
    CHANGED = "changed"
    # It has another one, or none, and what that means for the group is known already.
    CHANGED_AND_RESOLVED = "changed and resolved"


class TopicBirths:
    """The version of the metadata in which topics were last created, found by comparing the topics now and then."""

    def __init__(self) -> None:
        self._seen: Topics | None = None
        self._version = 0

    def version(self, machine: GroupMachine) -> int:
        topics = machine.image.topics
        if topics is not self._seen:
            seen, self._seen = self._seen, topics
            if seen is None or any(topic_id not in seen.by_id for topic_id in topics.by_id):
                self._version = machine.image.offset
        return self._version


def update_patterns(
    step: Step, old: ConsumerMember, new: ConsumerMember, may_describe: Callable[[str], bool]
) -> PatternChange:
    """Follow a member's change of its pattern, and ask for a look-up if one is due."""
    group = step.group
    change, is_new = PatternChange.NONE, False
    if old.pattern != new.pattern:
        change = PatternChange.CHANGED
        if old.pattern and group.subscriptions.patterns[old.pattern] == 1:
            step.records.append(pattern_tombstone(group.id, old.pattern))
        if not new.pattern:
            change = PatternChange.CHANGED_AND_RESOLVED
        elif new.pattern not in group.subscriptions.patterns:
            check_pattern(new.pattern)
            is_new = True
        elif new.pattern in group.subscriptions.resolved:
            change = PatternChange.CHANGED_AND_RESOLVED
    if is_new or group.subscriptions.patterns:
        _ask_for_lookup(step, old, new, may_describe, is_new=is_new)
    return change


def _ask_for_lookup(
    step: Step, old: ConsumerMember, new: ConsumerMember, may_describe: Callable[[str], bool], *, is_new: bool
) -> None:
    machine, group = step.machine, step.group
    if group.id in machine.lookups:
        return
    last = group.subscriptions.oldest_resolved()
    if last is not None and step.now_ms <= last.timestamp_ms + LOOKUP_INTERVAL_MS:
        return
    patterns = group.subscriptions.patterns.copy()
    if old.pattern:
        patterns[old.pattern] -= 1
    if new.pattern:
        patterns[new.pattern] += 1
    wanted = tuple(pattern for pattern, count in patterns.items() if count > 0)
    version = 0 if last is None else last.version
    refresh_ms = machine.settings[GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS]
    is_due = (
        is_new
        or len(wanted) != len(group.subscriptions.resolved)
        or version < machine.topic_births.version(machine)
        or last is None
        or step.now_ms > last.timestamp_ms + refresh_ms
    )
    if wanted and is_due:
        step.lookup = Lookup(wanted, may_describe)


def decide_patterns(machine: GroupMachine, group: ConsumerGroup, now_ms: int) -> Decision[Any]:
    """The look-up itself."""
    lookup = machine.lookups.pop(group.id, None)
    if lookup is None:
        return Decision()
    step = Step(machine, group, now_ms)
    step.change_subscriptions()
    names = list(machine.image.topics.by_name)
    changed = False
    for pattern in lookup.patterns:
        if pattern not in group.subscriptions.patterns:
            continue  # its last member has gone
        topics = frozenset(topic for topic in matching(pattern, names) if lookup.may_describe(topic))
        resolved = ResolvedPattern(topics, machine.image.offset, now_ms)
        known = group.subscriptions.resolved.get(pattern)
        changed |= topics != (known.topics if known is not None else frozenset())
        step.subscriptions.resolve(pattern, resolved)
        step.records.append(pattern_record(group.id, pattern, topics, resolved.version, now_ms))
    if step.records:
        step.update_metadata(bump=changed)
    return step.decision()
