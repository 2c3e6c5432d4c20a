from __future__ import annotations

from millstream.protocol.declare import Bool, Int8, Int16, Int32, String, message, struct, wire


@struct
class AlterableConfig:
    name: String
    value: String | None


@struct
class AlterConfigsResource:
    resource_type: Int8
    resource_name: String
    configs: list[AlterableConfig]


@message(key=33, versions="0-2", flexible="2+", listeners=("broker", "controller"))
class AlterConfigsRequest:
    """Replaces all settings of a topic, broker or group: what is not named goes back to its default.

    KIP-133; IncrementalAlterConfigs is the one that people mean.
    """

    resources: list[AlterConfigsResource]
    validate_only: Bool


@struct
class AlterConfigsResourceResponse:
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    resource_type: Int8
    resource_name: String


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """One result per resource."""

    throttle_time_ms: Int32 = wire(default=0)
    responses: list[AlterConfigsResourceResponse]
