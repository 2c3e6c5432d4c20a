"""One group from the inside: its state, its members and what each of them reads.

A name does not tell which protocol its group speaks. So, as Kafka's own clients do, the coordinator is asked with
ConsumerGroupDescribe (KIP-848) first and with DescribeGroups when it knows no such group, or no such request. The
answers differ much; here both are one thing, where epochs and targets are None for a classic group.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.client.client import CoordinatorOf
from millstream.client.errors import NotSupported, Refusal, refuse
from millstream.client.group_protocol import CONSUMER, read_assignment, read_subscription
from millstream.client.groups import group_subject
from millstream.protocol.errors import ErrorCode, MalformedMessage
from millstream.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from millstream.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.protocol.messages import consumer_group_describe as new
    from millstream.protocol.messages import describe_groups as classic

# A classic member of a KIP-848 group, from version 1 of ConsumerGroupDescribe on (KIP-1099).
_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1
_NOT_NEW = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member, and the partitions that it reads now."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    topics: tuple[str, ...] = ()
    # Only of KIP-848 groups: the member's epoch, what it is meant to read, and whether it speaks the new protocol.
    epoch: int | None = None
    target: tuple[TopicPartition, ...] | None = None
    upgraded: bool | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group in detail. `kind` is Kafka's word: Classic or Consumer."""

    id: str
    kind: str
    protocol_type: str
    state: str
    assignor: str
    coordinator_id: int
    members: tuple[GroupMember, ...] = field(default=())
    epoch: int | None = None
    assignment_epoch: int | None = None

    @property
    def is_of_consumers(self) -> bool:
        """Whether it is about partitions of topics: consumers, or only offsets that somebody stored ("simple")."""
        return self.protocol_type in ("", CONSUMER)


async def describe_groups(client: Client, groups: Sequence[str]) -> dict[str, GroupDescription | Refusal]:
    """The named groups, in the order of the names."""
    found = await asyncio.gather(*(_described(client, group) for group in groups))
    return dict(zip(groups, found, strict=True))


async def _described(client: Client, group: str) -> GroupDescription | Refusal:
    async def attempt() -> GroupDescription:
        node = await client.resolve(CoordinatorOf(group))
        found = await _ask_as_new(client, group, node)
        return found or await _ask_as_classic(client, group, node)

    try:
        return await client.retrying(attempt)
    except Refusal as refusal:
        return refusal


async def _ask_as_new(client: Client, group: str, node: int) -> GroupDescription | None:
    request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    try:
        response: ConsumerGroupDescribeResponse = await client.call(request, node=node)
    except NotSupported:
        return None
    (answer,) = response.groups
    if answer.error_code in _NOT_NEW:
        return None
    refuse(answer.error_code, answer.error_message, subject=group_subject(group))
    return GroupDescription(
        id=group,
        kind="Consumer",
        protocol_type=CONSUMER,
        state=answer.group_state,
        assignor=answer.assignor_name,
        coordinator_id=node,
        members=tuple(_new_member(member) for member in answer.members),
        epoch=answer.group_epoch,
        assignment_epoch=answer.assignment_epoch,
    )


def _new_member(member: new.Member) -> GroupMember:
    kinds = {_CLASSIC_MEMBER: False, _CONSUMER_MEMBER: True}
    return GroupMember(
        id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_partitions(member.assignment),
        topics=tuple(member.subscribed_topic_names),
        epoch=member.member_epoch,
        target=_partitions(member.target_assignment),
        upgraded=kinds.get(member.member_type),
    )


def _partitions(assignment: new.Assignment) -> tuple[TopicPartition, ...]:
    return tuple((topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions)


async def _ask_as_classic(client: Client, group: str, node: int) -> GroupDescription:
    response: DescribeGroupsResponse = await client.call(DescribeGroupsRequest(groups=[group]), node=node)
    (answer,) = response.groups
    refuse(answer.error_code, answer.error_message, subject=group_subject(group))
    if answer.group_state == DEAD and not answer.members:
        # Brokers before version 6 invent a dead group for a name that they don't know.
        refuse(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group} not found.", subject=group_subject(group))
    readable = answer.protocol_type == CONSUMER
    return GroupDescription(
        id=group,
        kind="Classic",
        protocol_type=answer.protocol_type,
        state=answer.group_state,
        assignor=answer.protocol_data,
        coordinator_id=node,
        members=tuple(_classic_member(member, readable=readable) for member in answer.members),
    )


def _classic_member(member: classic.DescribedGroupMember, *, readable: bool) -> GroupMember:
    assignment: list[TopicPartition] = []
    topics: list[str] = []
    if readable:
        try:
            assignment = read_assignment(member.member_assignment)
            # While a group rebalances, its members are listed without metadata.
            topics = read_subscription(member.member_metadata) if member.member_metadata else []
        except MalformedMessage:
            # Bytes of a member's own: what it reads is its secret, the rest can be shown.
            pass
    return GroupMember(
        id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=tuple(assignment),
        topics=tuple(topics),
    )
