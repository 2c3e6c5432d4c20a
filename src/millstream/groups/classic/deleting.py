"""DeleteGroups: a group without members goes, of whatever kind, with everything that it committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.errors import ErrorCode, GroupNotFound
from millstream.replicated import Decision

if TYPE_CHECKING:
    from millstream.groups.machine import GroupMachine


def decide_delete_group(machine: GroupMachine, group_id: str) -> Decision[ErrorCode]:
    group = machine.group(group_id)
    if group is None:
        raise GroupNotFound(f"there is no group '{group_id}'")
    group.check_delete()
    return Decision(records=(*machine.offsets.tombstones(group_id), *group.tombstones()), response=ErrorCode.NONE)
