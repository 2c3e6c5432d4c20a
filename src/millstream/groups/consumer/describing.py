"""ConsumerGroupDescribe: what a consumer group is now. Names of topics that are gone are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.consumer.config import assignor_names
from millstream.groups.consumer.group import ConsumerGroup
from millstream.groups.consumer.partitions import NO_PARTITIONS
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions
from millstream.replicated import Decision

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from millstream.groups.consumer.member import ConsumerMember
    from millstream.groups.machine import GroupMachine
    from millstream.metadata.image import MetadataImage
    from millstream.protocol.uuid import Uuid

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def decide_consumer_describe(machine: GroupMachine, group_id: str, now_ms: int) -> Decision[DescribedGroup]:
    group = machine.group(group_id)
    if not isinstance(group, ConsumerGroup):
        reason = "not found" if group is None else "is not a consumer group"
        return Decision(
            response=bare_description(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
        )
    described = bare_description(group_id)
    described.group_state = group.state_name(now_ms)
    described.group_epoch = group.epoch
    described.assignment_epoch = group.target_epoch
    described.assignor_name = group.subscriptions.favourite_assignor() or assignor_names(machine.settings)[0]
    described.members = [_described(machine.image, group, member) for member in group.members.values()]
    return Decision(response=described)


def bare_description(group_id: str, code: ErrorCode = ErrorCode.NONE, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(
        error_code=code,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )


def _described(image: MetadataImage, group: ConsumerGroup, member: ConsumerMember) -> Member:
    # What a member may still be reading is shown as its own until it has let go.
    held = {
        topic_id: {*member.assigned.get(topic_id, ()), *member.revoking.get(topic_id, ())}
        for topic_id in dict.fromkeys((*member.assigned, *member.revoking))
    }
    return Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.pattern,
        assignment=_told(held, image),
        target_assignment=_told(group.target.get(member.id, NO_PARTITIONS), image),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _told(partitions: Mapping[Uuid, Collection[int]], image: MetadataImage) -> Assignment:
    by_id = image.topics.by_id
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=by_id[topic_id].name, partitions=sorted(indexes))
            for topic_id, indexes in partitions.items()
            if topic_id in by_id
        ]
    )
