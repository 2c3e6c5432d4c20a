from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, String, message, struct, wire


@message(key=74, versions="0-1", flexible="0+", listeners=("broker",))
class ListConfigResourcesRequest:
    """Lists what has settings of its own. v0 knew client metrics only; v1: KIP-1142, any type, none named means all."""

    resource_types: list[Int8] = wire("1+", default=[])


@struct
class ConfigResource:
    resource_name: String
    resource_type: Int8 = wire("1+", default=16)


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """Names, from v1 on with their types."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    config_resources: list[ConfigResource]
