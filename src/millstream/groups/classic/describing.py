"""DescribeGroups and ListGroups, from what the groups of one shard are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.classic.group import ClassicGroup
from millstream.groups.classic.state import GroupState
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from millstream.replicated import Decision

if TYPE_CHECKING:
    from millstream.groups.classic.member import ClassicMember
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.list_groups import ListedGroup, ListGroupsRequest

# Before, a group that does not exist is described as one that is dead (KIP-1043).
NOT_FOUND_SINCE = 6


def decide_describe(machine: GroupMachine, group_id: str, version: int, now_ms: int) -> Decision[DescribedGroup]:
    group = machine.group(group_id)
    if isinstance(group, ClassicGroup):
        return Decision(response=_described(group))
    if group is not None and group.type_name == ClassicGroup.type_name:
        listed = group.listed(now_ms)
        return Decision(response=bare_group(group_id, listed.group_state))
    missing = bare_group(group_id, GroupState.DEAD.value)
    if version >= NOT_FOUND_SINCE:
        missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        missing.error_message = (
            f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
        )
    return Decision(response=missing)


def _described(group: ClassicGroup) -> DescribedGroup:
    described = bare_group(group.id, group.state.value)
    described.protocol_type = group.protocol_type or ""
    # Only a stable group has a protocol that all its members go by.
    protocol = group.protocol if group.state is GroupState.STABLE else None
    described.protocol_data = protocol or ""
    described.members = [_described_member(member, protocol) for member in group.members.values()]
    return described


def bare_group(group_id: str, state: str) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, group_state=state, protocol_type="", protocol_data="", members=[])


def _described_member(member: ClassicMember, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client.id,
        client_host=member.client.host,
        member_metadata=b"" if protocol is None else member.protocols[protocol],
        member_assignment=member.assignment,
    )


def decide_list(machine: GroupMachine, request: ListGroupsRequest, now_ms: int) -> Decision[list[ListedGroup]]:
    """The groups whose state and type the request names, in any spelling of upper and lower case; all without."""
    states = {state.lower() for state in request.states_filter}
    types = {type_name.lower() for type_name in request.types_filter}
    listed = (group.listed(now_ms) for group in machine.all_groups())
    return Decision(
        response=[
            group
            for group in listed
            if (not states or group.group_state.lower() in states) and (not types or group.group_type.lower() in types)
        ]
    )
