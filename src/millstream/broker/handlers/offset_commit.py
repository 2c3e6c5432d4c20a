"""OffsetCommit: how far a group has read. No task: the answer leaves in the same call where one replica is in sync."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, handles
from millstream.groups.offsets.commit import OffsetCommit, refuse_commit
from millstream.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.broker.dispatch import Deferred

_READ_GROUP, _READ_TOPIC = needs_of(OffsetCommitRequest)


@handles(OffsetCommitRequest, versions="2-10")
def offset_commit(request: OffsetCommitRequest, ctx: Context) -> OffsetCommitResponse | Deferred:
    if not _READ_GROUP.granted(ctx.allows, request.group_id):
        return refuse_commit(request, _READ_GROUP.refusal)
    commit = OffsetCommit(request, ctx.version, ctx.broker.image, partial(_READ_TOPIC.granted, ctx.allows))
    if commit.is_void:
        return commit.response
    return ctx.broker.groups.submit(
        request.group_id, lambda machine, _, now_ms: commit.decide(machine, now_ms), refuse=commit.refuse
    )
