from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, String, message, struct, wire


@struct
class AclCreation:
    resource_type: Int8
    resource_name: String
    resource_pattern_type: Int8 = wire(default=3)
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@message(key=30, versions="1-3", flexible="2+", listeners=("broker", "controller"))
class CreateAclsRequest:
    """Adds access rules. v1: KIP-290, prefixed patterns. v3: users as resources."""

    creations: list[AclCreation]


@struct
class AclCreationResult:
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")


@message(key=30, versions="1-3", flexible="2+")
class CreateAclsResponse:
    """One result per rule."""

    throttle_time_ms: Int32 = wire(default=0)
    results: list[AclCreationResult]
