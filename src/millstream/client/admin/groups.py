"""Groups as lists: which there are, and away with them or with single offsets of theirs.

What one group looks like inside is in `described_groups`; offsets are read and written with `client.groups`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.client.client import CoordinatorOf
from millstream.client.errors import Refusal, partition_subject, refuse
from millstream.client.grouping import by_topic
from millstream.client.groups import group_subject
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from millstream.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from millstream.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from millstream.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Sequence

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition

# The versions of ListGroups that first filter by state and by type; an older broker would send everything.
FILTERS_STATES, FILTERS_TYPES = 4, 5
# The first version of LeaveGroup that names several members, by instance id too (KIP-345).
LEAVES_TOGETHER = 3


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group as its coordinator lists it; state and type are empty from brokers too old to tell."""

    id: str
    protocol_type: str
    state: str
    kind: str
    coordinator_id: int


async def list_groups(
    client: Client, *, states: Collection[str] = (), kinds: Collection[str] = ()
) -> list[GroupListing]:
    """The groups of all brokers, by name; those in one of these states and of one of these kinds if any are given."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(kinds))
    at_least = FILTERS_TYPES if kinds else FILTERS_STATES if states else 0

    async def ask(node: int) -> list[GroupListing]:
        async def attempt() -> list[GroupListing]:
            response: ListGroupsResponse = await client.call(request, node=node, at_least=at_least)
            refuse(response.error_code)
            return [
                GroupListing(group.group_id, group.protocol_type, group.group_state, group.group_type, node)
                for group in response.groups
            ]

        return await client.retrying(attempt)

    await client.retrying(client.metadata.refresh_cluster)
    parts = await asyncio.gather(*(ask(node) for node in client.nodes.brokers))
    # A group that moves to another coordinator meanwhile may be listed by both.
    found = {group.id: group for part in parts for group in part}
    return [found[name] for name in sorted(found)]


async def delete_groups(client: Client, groups: Sequence[str]) -> dict[str, Refusal | None]:
    """Forget groups that have no members, with their offsets."""

    async def one(group: str) -> Refusal | None:
        async def attempt() -> None:
            response: DeleteGroupsResponse = await client.call(
                DeleteGroupsRequest(groups_names=[group]), node=CoordinatorOf(group)
            )
            refuse(response.results[0].error_code, subject=group_subject(group))

        return await _outcome(client.retrying(attempt))

    outcomes = await asyncio.gather(*(one(group) for group in groups))
    return dict(zip(groups, outcomes, strict=True))


async def delete_offsets(
    client: Client, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Refusal | None]:
    """Forget where a group stood in these partitions; refused for topics that its members read."""
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            )
            for topic, indexes in by_topic(partitions).items()
        ],
    )

    async def attempt() -> dict[TopicPartition, Refusal | None]:
        response: OffsetDeleteResponse = await client.call(request, node=CoordinatorOf(group))
        refuse(response.error_code, subject=group_subject(group))
        return {
            (topic.name, part.partition_index): Refusal(
                part.error_code, subject=partition_subject(topic.name, part.partition_index)
            )
            if part.error_code
            else None
            for topic in response.topics
            for part in topic.partitions
        }

    return await client.retrying(attempt, final=(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,))


async def remove_members(
    client: Client, group: str, members: Sequence[tuple[str, str | None]]
) -> dict[str, Refusal | None]:
    """Put members out of a group: (id, instance id or None) of each. A static member is known by its instance."""
    request = LeaveGroupRequest(
        group_id=group,
        members=[
            MemberIdentity(
                member_id=member if instance is None else "",
                group_instance_id=instance,
                reason="member was removed by an admin",
            )
            for member, instance in members
        ],
    )

    async def attempt() -> dict[str, Refusal | None]:
        response: LeaveGroupResponse = await client.call(request, node=CoordinatorOf(group), at_least=LEAVES_TOGETHER)
        refuse(response.error_code, subject=group_subject(group))
        return {
            part.group_instance_id or part.member_id: Refusal(part.error_code, subject=group_subject(group))
            if part.error_code
            else None
            for part in response.members
        }

    return await client.retrying(attempt)


async def _outcome(call: Awaitable[None]) -> Refusal | None:
    try:
        await call
    except Refusal as refusal:
        return refusal
    return None
