"""ElectLeaders: preferred and unclean elections by hand."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.metadata_changes import change_metadata
from millstream.metadata.decide_elections import decide_elect_leaders
from millstream.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from millstream.security.operations import needs_of

(_ALTER,) = needs_of(ElectLeadersRequest)


@handles(ElectLeadersRequest, versions="0-2", forwards=True)
async def elect_leaders(request: ElectLeadersRequest, ctx: Context) -> ElectLeadersResponse:
    if not _ALTER.granted(ctx.allows):
        return ElectLeadersResponse(error_code=_ALTER.refusal, replica_election_results=[])
    return await change_metadata(ctx, request, lambda image, _: decide_elect_leaders(image, request))
