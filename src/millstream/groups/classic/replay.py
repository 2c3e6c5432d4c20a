"""Classic groups from their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.groups.group_metadata import GroupMetadataKey, GroupMetadataValue


def apply_group_metadata(machine: GroupMachine, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    """The helper of groups/classic writes this: a value makes or replaces the ClassicGroup, None removes it."""
    if value is None:
        machine.groups.pop(key.group, None)
