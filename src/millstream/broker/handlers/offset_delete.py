"""OffsetDelete: forgets offsets of topics that a group does not read any more (KIP-496)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, handles
from millstream.groups.offsets.delete import OffsetDelete, refuse_delete
from millstream.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.broker.dispatch import Deferred

_DELETE_GROUP, _READ_TOPIC = needs_of(OffsetDeleteRequest)


@handles(OffsetDeleteRequest, versions="0")
def offset_delete(request: OffsetDeleteRequest, ctx: Context) -> OffsetDeleteResponse | Deferred:
    if not _DELETE_GROUP.granted(ctx.allows, request.group_id):
        return refuse_delete(_DELETE_GROUP.refusal)
    deletion = OffsetDelete(request, ctx.broker.image, partial(_READ_TOPIC.granted, ctx.allows))
    return ctx.broker.groups.submit(
        request.group_id, lambda machine, _token, _now_ms: deletion.decide(machine), refuse=refuse_delete
    )
