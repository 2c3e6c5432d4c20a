"""The answers to JoinGroup and SyncGroup, in the shape of each version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from millstream.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from millstream.groups.classic.group import ClassicGroup

NO_GENERATION = -1
# Before, "no protocol" is an empty string (KIP-559).
NULL_PROTOCOL_SINCE = 7


def join_answer(
    version: int,
    *,
    member_id: str,
    error: ErrorCode = ErrorCode.NONE,
    generation: int = NO_GENERATION,
    protocol_type: str | None = None,
    protocol: str | None = None,
    leader: str | None = None,
    members: list[JoinGroupResponseMember] | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=error,
        generation_id=generation,
        protocol_type=protocol_type,
        protocol_name="" if protocol is None and version < NULL_PROTOCOL_SINCE else protocol,
        leader=leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members or [],
    )


def joined_answer(
    group: ClassicGroup, member_id: str, version: int, *, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The member is in the group's generation; if it leads, it is told what all members said of themselves."""
    leads = group.leader == member_id
    return join_answer(
        version,
        member_id=member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader,
        members=_told_members(group) if leads else None,
        skip_assignment=skip_assignment and leads,
    )


def _told_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    protocol = group.protocol or ""
    return [
        JoinGroupResponseMember(
            member_id=member.id, group_instance_id=member.instance_id, metadata=member.protocols[protocol]
        )
        for member in group.members.values()
    ]


def sync_answer(
    *,
    error: ErrorCode = ErrorCode.NONE,
    protocol_type: str | None = None,
    protocol: str | None = None,
    assignment: bytes = b"",
) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=error, protocol_type=protocol_type, protocol_name=protocol, assignment=assignment
    )


def synced_answer(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return sync_answer(protocol_type=group.protocol_type, protocol=group.protocol, assignment=assignment)
