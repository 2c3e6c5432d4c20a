from __future__ import annotations

from millstream.protocol.declare import Bool, Int8, Int16, Int32, String, message, struct, wire


@struct
class AlterableConfig:
    name: String
    config_operation: Int8
    value: String | None


@struct
class AlterConfigsResource:
    resource_type: Int8
    resource_name: String
    configs: list[AlterableConfig]


@message(key=44, versions="0-1", flexible="1+", listeners=("broker", "controller"))
class IncrementalAlterConfigsRequest:
    """Sets, deletes, appends to or subtracts from single settings (KIP-339)."""

    resources: list[AlterConfigsResource]
    validate_only: Bool


@struct
class AlterConfigsResourceResponse:
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    resource_type: Int8
    resource_name: String


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """One result per resource."""

    throttle_time_ms: Int32 = wire(default=0)
    responses: list[AlterConfigsResourceResponse]
