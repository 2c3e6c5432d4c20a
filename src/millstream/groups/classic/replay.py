"""What is in the log of a classic group becomes the group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.classic.group import ClassicGroup

if TYPE_CHECKING:
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.groups.group_metadata import GroupMetadataKey, GroupMetadataValue


def apply_group_metadata(machine: GroupMachine, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    """Applies a group's record, its own of a moment ago or one from the log; a tombstone removes the group."""
    group = machine.groups.get(key.group)
    if value is None:
        # The tombstone of a classic group says nothing about a group of another kind that took its id.
        if group is None or isinstance(group, ClassicGroup):
            machine.forget_group(key.group)
        return
    if isinstance(group, ClassicGroup) and group.has_decided(value):
        group.take_assignments(value)
    else:
        machine.groups[key.group] = ClassicGroup.restored(key.group, value)
