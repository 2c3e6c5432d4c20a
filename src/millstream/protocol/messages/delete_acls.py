from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, String, message, struct, wire


@struct
class DeleteAclsFilter:
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = wire(default=3)
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


@message(key=31, versions="1-3", flexible="2+", listeners=("broker", "controller"))
class DeleteAclsRequest:
    """Removes all access rules that match a filter. v1: KIP-290, prefixed patterns."""

    filters: list[DeleteAclsFilter]


@struct
class DeleteAclsMatchingAcl:
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = wire(default=3)
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@struct
class DeleteAclsFilterResult:
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    matching_acls: list[DeleteAclsMatchingAcl]


@message(key=31, versions="1-3", flexible="2+")
class DeleteAclsResponse:
    """For each filter the rules that matched it."""

    throttle_time_ms: Int32 = wire(default=0)
    filter_results: list[DeleteAclsFilterResult]
