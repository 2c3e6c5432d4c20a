"""Offsets that nobody has used for `offsets.retention.minutes` are forgotten, and groups that have nothing left.

The group says from when on its offsets age, and keeps those of topics it is subscribed to; see `Group.offset_expiry`.
An offset with a time of expiry of its own (commits before version 5 could set one) follows that instead.

Each decision removes a bounded number of records (tombstones.py); the rest follows from the next turn of the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.offsets.tombstones import TombstoneBatch
from millstream.replicated import Decision, Schedule
from millstream.settings import OFFSETS_RETENTION_CHECK_INTERVAL_MS, OFFSETS_RETENTION_MINUTES

if TYPE_CHECKING:
    from millstream.groups.group import OffsetExpiry
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.groups.offset_commit import OffsetCommitValue

EXPIRY_TIMER = ("offsets", "expiry")
MINUTE_MS = 60_000
NO_TIMESTAMP = -1


def decide_expiry(machine: GroupMachine, now_ms: int) -> Decision[None]:
    """One turn of a round over all groups."""
    if not machine.expiry_queue:
        machine.expiry_queue = [group.id for group in machine.all_groups()]
    queue = machine.expiry_queue
    batch = TombstoneBatch()
    while queue and not batch.is_full:
        if _expire(machine, queue[-1], now_ms, batch):
            queue.pop()
    delay_ms = 0 if queue else machine.settings[OFFSETS_RETENTION_CHECK_INTERVAL_MS]
    return Decision(records=tuple(batch.records), timers=(Schedule(EXPIRY_TIMER, delay_ms),))


def _expire(machine: GroupMachine, group_id: str, now_ms: int, batch: TombstoneBatch) -> bool:
    """Whether the group is done with for this round; otherwise it has more than fits."""
    group = machine.group(group_id)
    if group is None:
        return True
    expiry = group.offset_expiry()
    offsets = machine.offsets
    everything_expired = not offsets.has_open_transactions(group_id)
    retention_ms = machine.settings[OFFSETS_RETENTION_MINUTES] * MINUTE_MS
    for topic, partitions in offsets.of_group(group_id).items():
        if expiry is None or group.is_subscribed_to(topic):
            everything_expired = False
            continue
        for partition, value in partitions.items():
            if not _is_expired(value, expiry, now_ms, retention_ms) or offsets.is_unstable(group_id, topic, partition):
                everything_expired = False
            elif batch.is_full:
                return False
            else:
                batch.add(group_id, topic, partition)
    if everything_expired and group.is_empty:
        batch.records += group.tombstones()
    return True


def _is_expired(value: OffsetCommitValue, expiry: OffsetExpiry, now_ms: int, retention_ms: int) -> bool:
    if value.expire_timestamp != NO_TIMESTAMP:
        return now_ms >= value.expire_timestamp
    since_ms = value.commit_timestamp if expiry.since_ms is None else expiry.since_ms
    return now_ms - since_ms >= retention_ms
