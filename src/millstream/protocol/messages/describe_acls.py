from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, String, message, struct, wire


@message(key=29, versions="1-3", flexible="2+", listeners=("broker", "controller"))
class DescribeAclsRequest:
    """Lists the access rules that match a filter. v1: KIP-290, prefixed patterns."""

    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = wire(default=3)
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


@struct
class AclDescription:
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@struct
class DescribeAclsResource:
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = wire(default=3)
    acls: list[AclDescription]


@message(key=29, versions="1-3", flexible="2+")
class DescribeAclsResponse:
    """The matching rules by resource."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    resources: list[DescribeAclsResource]
