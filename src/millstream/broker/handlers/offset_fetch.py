"""OffsetFetch: how far groups have read; each group is asked at its own shard."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.gathering import gather
from millstream.groups.offsets.fetch import decide_offset_fetch, groups_of, refuse_fetch, response_of
from millstream.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.offset_fetch import OffsetFetchResponseGroup
    from millstream.replicated import Decision, Token

_DESCRIBE_GROUP, _DESCRIBE_TOPIC = needs_of(OffsetFetchRequest)

# Shorter than the sessions of members, whose heartbeats are answered on the same connection, after this.
DOUBT_S = 5.0


@handles(OffsetFetchRequest, versions="1-10")
def offset_fetch(request: OffsetFetchRequest, ctx: Context) -> OffsetFetchResponse | Deferred:
    asked = groups_of(request, ctx.version)
    answers = [_fetch(group, ctx, require_stable=request.require_stable) for group in asked]
    return gather(answers, lambda groups: response_of(groups, asked, ctx.version))  # type: ignore[no-any-return]


def _fetch(group: OffsetFetchRequestGroup, ctx: Context, *, require_stable: bool) -> Deferred:
    if not _DESCRIBE_GROUP.granted(ctx.allows, group.group_id):
        refused = Deferred()
        refused.finish(refuse_fetch(group, _DESCRIBE_GROUP.refusal))
        return refused
    may_describe: Callable[[str], bool] = partial(_DESCRIBE_TOPIC.granted, ctx.allows)

    def decide(machine: GroupMachine, _token: Token, _now_ms: int) -> Decision[OffsetFetchResponseGroup]:
        return decide_offset_fetch(machine, group, ctx.version, may_describe, require_stable=require_stable)

    # Who asks for stable offsets goes by the answer: it must not be that of a coordinator that was replaced.
    return ctx.broker.groups.submit(
        group.group_id,
        decide,
        refuse=partial(refuse_fetch, group),
        must_be_certain=require_stable,
        doubt_s=DOUBT_S,
    )
