from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, Int64, String, message, struct, wire


@message(key=18, versions="0-4", flexible="3+", listeners=("broker", "controller"))
class ApiVersionsRequest:
    """The first request on a connection: which APIs and versions does the broker speak?

    v3: KIP-511, the client says who it is. v4 is the same on the wire.
    """

    client_software_name: String = wire("3+", default="")
    client_software_version: String = wire("3+", default="")


@struct
class ApiVersion:
    api_key: Int16
    min_version: Int16
    max_version: Int16


@struct
class SupportedFeatureKey:
    name: String
    min_version: Int16
    max_version: Int16


@struct
class FinalizedFeatureKey:
    name: String
    max_version_level: Int16
    min_version_level: Int16


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    """The served versions of each API and the features of the cluster.

    Its header is always v0. A request in an unknown version is answered in v0 with UNSUPPORTED_VERSION and the
    versions of ApiVersions itself (KIP-511). v3: KIP-584, features. v4: a feature's lowest level may be 0
    (KAFKA-17011).
    """

    error_code: Int16 = wire(default=0)
    api_keys: list[ApiVersion]
    throttle_time_ms: Int32 = wire("1+", default=0)
    supported_features: list[SupportedFeatureKey] = wire("3+", default=[], tag=0)
    finalized_features_epoch: Int64 = wire("3+", default=-1, tag=1)
    finalized_features: list[FinalizedFeatureKey] = wire("3+", default=[], tag=2)
    zk_migration_ready: Bool = wire("3+", default=False, tag=3)
