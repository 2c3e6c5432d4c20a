"""DeleteGroups: groups without members go, with their offsets; see groups/classic/deleting.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.gathering import gather
from millstream.groups.classic.deleting import decide_delete_group
from millstream.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.protocol.errors import ErrorCode

(_DELETE,) = needs_of(DeleteGroupsRequest)


@handles(DeleteGroupsRequest, versions="0-2")
def delete_groups(request: DeleteGroupsRequest, ctx: Context) -> DeleteGroupsResponse | Deferred:
    # A name that comes twice is deleted once: the answer has one result for each name.
    names = list(dict.fromkeys(request.groups_names))

    def combine(codes: list[ErrorCode]) -> DeleteGroupsResponse:
        results = zip(names, codes, strict=True)
        return DeleteGroupsResponse(
            results=[DeletableGroupResult(group_id=name, error_code=code) for name, code in results]
        )

    return gather([_deleted(name, ctx) for name in names], combine)  # type: ignore[no-any-return]


def _deleted(group_id: str, ctx: Context) -> Deferred:
    if not _DELETE.granted(ctx.allows, group_id):
        refused = Deferred()
        refused.finish(_DELETE.refusal)
        return refused
    return ctx.broker.groups.submit(
        group_id, lambda machine, _, _now_ms: decide_delete_group(machine, group_id), refuse=lambda code: code
    )
