from __future__ import annotations

from millstream.protocol.declare import Bool, Int8, Int16, Int32, String, message, struct, wire


@struct
class DescribeConfigsResource:
    resource_type: Int8
    resource_name: String
    configuration_keys: list[String] | None


@message(key=32, versions="1-4", flexible="4+", listeners=("broker", "controller"))
class DescribeConfigsRequest:
    """Reads settings of topics, brokers, loggers and groups, all of them or by name. v3: KIP-569, documentation."""

    resources: list[DescribeConfigsResource]
    include_synonyms: Bool = wire(default=False)
    include_documentation: Bool = wire("3+", default=False)


@struct
class DescribeConfigsSynonym:
    name: String
    value: String | None
    source: Int8


@struct
class DescribeConfigsResourceResult:
    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = wire(default=-1)
    is_sensitive: Bool
    synonyms: list[DescribeConfigsSynonym]
    config_type: Int8 = wire("3+", default=0)
    documentation: String | None = wire("3+", default="")


@struct
class DescribeConfigsResult:
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    resource_type: Int8
    resource_name: String
    configs: list[DescribeConfigsResourceResult]


@message(key=32, versions="1-4", flexible="4+")
class DescribeConfigsResponse:
    """Values with their sources and synonyms. v3: KIP-569, types and documentation."""

    throttle_time_ms: Int32 = wire(default=0)
    results: list[DescribeConfigsResult]
