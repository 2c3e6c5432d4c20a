"""ApiVersions: what this broker speaks, computed from the table of handlers, and which features are on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, handles
from millstream.protocol.apis import API_VERSIONS_KEY
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.broker.dispatch import Handling

# What Kafka accepts as a client's name and version (KIP-511).
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_ANY_MIN_LEVEL_SINCE = 4


@handles(ApiVersionsRequest, versions="0-4")
def api_versions(request: ApiVersionsRequest, ctx: Context) -> ApiVersionsResponse:
    handlers = ctx.connection.listener.calls.handlers
    if ctx.version < 0:
        # A version of the future: say which ones there are, in version 0.
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_rows([handlers[API_VERSIONS_KEY]])
        )
    if ctx.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    image = ctx.broker.image
    return ApiVersionsResponse(
        api_keys=_rows(handlers[key] for key in sorted(handlers)),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=levels.min_level, max_version=levels.max_level)
            for name, levels in sorted(ctx.broker.supported_features.items())
            # Clients before version 4 stumble over a lowest level of 0 (KAFKA-17011).
            if levels.min_level > 0 or ctx.version >= _ANY_MIN_LEVEL_SINCE
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(ctx.broker.finalized_features().items())
        ],
    )


def _rows(handlings: Iterable[Handling]) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=row.api_key, min_version=row.advertised.first, max_version=row.advertised.last)
        for row in handlings
    ]
