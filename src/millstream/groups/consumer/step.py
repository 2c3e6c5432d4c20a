"""What one decision on a consumer group is about to do: records and timers, gathered while it is being worked out.

The group itself stays as it is until the records are written, so the step also carries what the group will be: its
epoch and who reads what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.groups.consumer.records import epoch_record, old_metadata_tombstone
from millstream.groups.consumer.timer_keys import patterns_timer
from millstream.groups.consumer.topic_hash import group_hash
from millstream.replicated import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.consumer.group import ConsumerGroup
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.errors import ErrorCode
    from millstream.replicated import Cancel, Record, Reply, Schedule


class Lookup(NamedTuple):
    """A look-up that is due: the patterns, and which topics the member that asked may see."""

    patterns: tuple[str, ...]
    may_describe: Callable[[str], bool]


class Step:
    """One decision in the making."""

    def __init__(self, machine: GroupMachine, group: ConsumerGroup, now_ms: int) -> None:
        self.machine = machine
        self.group = group
        self.now_ms = now_ms
        self.records: list[Record] = []
        self.timers: list[Schedule | Cancel] = []
        self.replies: list[Reply] = []
        self.epoch = group.epoch
        self.member_count = len(group.members)
        # The group's own until somebody changes them: then a copy (`change_subscriptions`).
        self.subscriptions = group.subscriptions
        self.lookup: Lookup | None = None
        # What to take back of the soft state if the records can't be written.
        self.undos: list[Callable[[], object]] = []

    def change_subscriptions(self) -> None:
        if self.subscriptions is self.group.subscriptions:
            self.subscriptions = self.group.subscriptions.copy()

    def update_metadata(self, *, bump: bool) -> None:
        """Look at the topics that the group reads now; the group enters a new epoch if they changed, or on demand."""
        machine, group = self.machine, self.group
        hashed = group_hash(self.subscriptions.topics(), machine.image, machine.topic_hashes)
        if bump or hashed != group.metadata_hash:
            self.epoch += 1
            self.records.append(epoch_record(group.id, self.epoch, hashed))
        group.look_at(machine.image.topics, self.epoch)
        if group.has_old_metadata:
            self.records.append(old_metadata_tombstone(group.id))

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members will read the same topics."""
        return self.subscriptions.are_equal(self.member_count)

    def decision(self, response: Any = None) -> Decision[Any]:
        lookups, group_id = self.machine.lookups, self.group.id
        if self.lookup is not None:
            lookups[group_id] = self.lookup
            self.timers.append(patterns_timer(group_id))
            # Without its timer nobody would ever make the look-up, nor ask for another.
            self.undos.append(lambda: lookups.pop(group_id, None))

        def undo(_: ErrorCode) -> Decision[Any]:
            for take_back in self.undos:
                take_back()
            return Decision()

        return Decision(
            records=tuple(self.records),
            response=response,
            replies=tuple(self.replies),
            timers=tuple(self.timers),
            undo=undo if self.undos else None,
        )
