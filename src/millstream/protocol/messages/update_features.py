from __future__ import annotations

from millstream.protocol.declare import Bool, Int8, Int16, Int32, String, message, struct, wire


@struct
class FeatureUpdateKey:
    feature: String
    max_version_level: Int16
    allow_downgrade: Bool = wire("0", default=False)
    upgrade_type: Int8 = wire("1+", default=1)


@message(key=57, versions="0-2", flexible="0+", listeners=("broker", "controller"))
class UpdateFeaturesRequest:
    """Raises or lowers feature levels (KIP-584). v1: a trial run, and what kind of downgrade is meant."""

    timeout_ms: Int32 = wire(default=60000)
    feature_updates: list[FeatureUpdateKey]
    validate_only: Bool = wire("1+", default=False)


@struct
class UpdatableFeatureResult:
    feature: String
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """Says whether all levels were changed. Up to v1 one result per feature; v2 has one for all, since it is all or
    nothing.
    """

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    results: list[UpdatableFeatureResult] = wire("0-1", default=[])
