"""ListGroups: all groups that this broker coordinates, of every kind; see groups/classic/describing.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.gathering import gather
from millstream.groups.classic.describing import decide_list
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.groups.machine import GroupMachine
    from millstream.runtime.shard import Shard

(_DESCRIBE,) = needs_of(ListGroupsRequest)


@handles(ListGroupsRequest, versions="0-5")
def list_groups(request: ListGroupsRequest, ctx: Context) -> ListGroupsResponse | Deferred:
    coordinator = ctx.broker.groups

    def listed(shard: Shard[GroupMachine]) -> Deferred:
        return coordinator.submit_to(
            lambda: shard, lambda machine, _, now_ms: decide_list(machine, request, now_ms), refuse=_refuse
        )

    def combine(answers: list[Any]) -> ListGroupsResponse:
        groups: list[ListedGroup] = []
        for answer in answers:
            if isinstance(answer, ErrorCode):
                if answer is not ErrorCode.NOT_COORDINATOR:
                    return ListGroupsResponse(error_code=answer, groups=[])
            else:
                groups += (group for group in answer if _DESCRIBE.granted(ctx.allows, group.group_id))
        return ListGroupsResponse(groups=groups)

    return gather([listed(shard) for shard in coordinator.active_shards()], combine)  # type: ignore[no-any-return]


def _refuse(code: ErrorCode) -> ErrorCode:
    return code
