"""DescribeGroups: state and members of classic groups; see groups/classic/describing.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.gathering import gather
from millstream.groups.classic.describing import bare_group, decide_describe
from millstream.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from millstream.security.operations import ResourceType, authorized_operations, needs_of

if TYPE_CHECKING:
    from millstream.protocol.errors import ErrorCode

(_DESCRIBE,) = needs_of(DescribeGroupsRequest)


@handles(DescribeGroupsRequest, versions="0-6")
def describe_groups(request: DescribeGroupsRequest, ctx: Context) -> DescribeGroupsResponse | Deferred:
    def combine(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in groups:
                if group.error_code == 0:
                    group.authorized_operations = authorized_operations(ctx.allows, ResourceType.GROUP, group.group_id)
        return DescribeGroupsResponse(groups=groups)

    return gather([_described(group_id, ctx) for group_id in request.groups], combine)  # type: ignore[no-any-return]


def _described(group_id: str, ctx: Context) -> Deferred:
    def refuse(code: ErrorCode) -> DescribedGroup:
        group = bare_group(group_id, "")
        group.error_code = code
        return group

    if not _DESCRIBE.granted(ctx.allows, group_id):
        refused = Deferred()
        refused.finish(refuse(_DESCRIBE.refusal))
        return refused
    version = ctx.version
    return ctx.broker.groups.submit(
        group_id, lambda machine, _, now_ms: decide_describe(machine, group_id, version, now_ms), refuse=refuse
    )
