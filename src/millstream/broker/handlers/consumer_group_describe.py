"""ConsumerGroupDescribe: groups of the new consumer protocol, as they are now; see groups/consumer/describing.py."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.consumer_protocol import is_consumer_protocol_on
from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.gathering import gather
from millstream.groups.consumer.describing import bare_description, decide_consumer_describe
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from millstream.security.operations import ResourceType, authorized_operations, needs_of

if TYPE_CHECKING:
    from millstream.groups.machine import GroupMachine
    from millstream.replicated import Decision, Token

(_DESCRIBE, _DESCRIBE_TOPIC) = needs_of(ConsumerGroupDescribeRequest)


@handles(ConsumerGroupDescribeRequest, versions="0-1")
def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, ctx: Context
) -> ConsumerGroupDescribeResponse | Deferred:
    if not is_consumer_protocol_on(ctx.broker):
        refused = [bare_description(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids]
        return ConsumerGroupDescribeResponse(groups=refused)
    asked = [_described(group_id, ctx) for group_id in request.group_ids]
    return gather(asked, partial(_combine, request, ctx))  # type: ignore[no-any-return]


def _described(group_id: str, ctx: Context) -> Deferred:
    refused = Deferred()
    if not _DESCRIBE.granted(ctx.allows, group_id):
        refused.finish(bare_description(group_id, _DESCRIBE.refusal))
        return refused
    if not group_id:
        refused.finish(bare_description(group_id, ErrorCode.INVALID_GROUP_ID))
        return refused

    def decide(machine: GroupMachine, _token: Token, now_ms: int) -> Decision[DescribedGroup]:
        return decide_consumer_describe(machine, group_id, now_ms)

    return ctx.broker.groups.submit(group_id, decide, refuse=partial(bare_description, group_id))


def _combine(
    request: ConsumerGroupDescribeRequest, ctx: Context, groups: list[DescribedGroup]
) -> ConsumerGroupDescribeResponse:
    for place, group in enumerate(groups):
        if group.error_code != ErrorCode.NONE:
            continue
        if not all(_DESCRIBE_TOPIC.granted(ctx.allows, topic) for topic in _topics(group)):
            groups[place] = bare_description(
                group.group_id, _DESCRIBE_TOPIC.refusal, "The group reads topics that may not be described."
            )
        elif request.include_authorized_operations:
            group.authorized_operations = authorized_operations(ctx.allows, ResourceType.GROUP, group.group_id)
    return ConsumerGroupDescribeResponse(groups=groups)


def _topics(group: DescribedGroup) -> dict[str, None]:
    """All that the description names."""
    return {
        name: None
        for member in group.members
        for name in (
            *member.subscribed_topic_names,
            *(topic.topic_name for topic in member.assignment.topic_partitions),
            *(topic.topic_name for topic in member.target_assignment.topic_partitions),
        )
    }
