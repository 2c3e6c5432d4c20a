"""UpdateFeatures: finalize feature levels for the whole cluster."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.metadata_changes import change_metadata
from millstream.metadata.decide_features import decide_update_features
from millstream.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from millstream.security.operations import needs_of
from millstream.settings import MIN_INSYNC_REPLICAS

(_ALTER,) = needs_of(UpdateFeaturesRequest)


@handles(UpdateFeaturesRequest, versions="0-2", forwards=True)
async def update_features(request: UpdateFeaturesRequest, ctx: Context) -> UpdateFeaturesResponse:
    if not _ALTER.granted(ctx.allows):
        return UpdateFeaturesResponse(error_code=_ALTER.refusal, error_message="Altering the cluster is not allowed.")
    broker = ctx.broker
    return await change_metadata(
        ctx,
        lambda image, _: decide_update_features(
            image,
            request,
            supported=broker.supported_features,
            node_id=broker.node_id,
            kraft_version=broker.controller.log.quorum.kraft_version,
            min_insync_replicas=broker.settings[MIN_INSYNC_REPLICAS],
        ),
    )
