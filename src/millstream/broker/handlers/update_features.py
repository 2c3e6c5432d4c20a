"""UpdateFeatures: finalize feature levels for the whole cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, handles
from millstream.broker.metadata_changes import change_metadata
from millstream.metadata.decide_features import KRaftVersion, decide_update_features, upgrades_kraft_version
from millstream.metadata.decision import Decision
from millstream.protocol.errors import StorageError
from millstream.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from millstream.security.operations import needs_of
from millstream.settings import MIN_INSYNC_REPLICAS

if TYPE_CHECKING:
    from millstream.metadata.image import MetadataImage

(_ALTER,) = needs_of(UpdateFeaturesRequest)


@handles(UpdateFeaturesRequest, versions="0-2", forwards=True)
async def update_features(request: UpdateFeaturesRequest, ctx: Context) -> UpdateFeaturesResponse:
    if not _ALTER.granted(ctx.allows):
        return UpdateFeaturesResponse(error_code=_ALTER.refusal, error_message="Altering the cluster is not allowed.")
    return await change_metadata(ctx, request, lambda image, _: _decide(image, request, ctx))


def _decide(image: MetadataImage, request: UpdateFeaturesRequest, ctx: Context) -> Decision[UpdateFeaturesResponse]:
    """kraft.version is a record of the quorum's own: it goes into the log before the others, once all is checked."""
    broker = ctx.broker
    controller = broker.controller
    kraft = KRaftVersion(controller.log.quorum.kraft_version, controller.voter_changes.why_not_upgraded())
    decision = decide_update_features(
        image,
        request,
        supported=broker.supported_features,
        node_id=broker.node_id,
        kraft=kraft,
        min_insync_replicas=broker.settings[MIN_INSYNC_REPLICAS],
    )
    if controller.is_active and decision.records and upgrades_kraft_version(request, kraft.level):
        try:
            controller.voter_changes.upgrade()
        except StorageError as error:
            return Decision((), UpdateFeaturesResponse(error_code=error.code, error_message=error.message))
    return decision
