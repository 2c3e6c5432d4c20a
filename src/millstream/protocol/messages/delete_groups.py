from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, message, struct, wire


@message(key=42, versions="0-2", flexible="2+", listeners=("broker",))
class DeleteGroupsRequest:
    """Removes groups that have no members (KIP-229)."""

    groups_names: list[String]


@struct
class DeletableGroupResult:
    group_id: String
    error_code: Int16 = wire(default=0)


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    """One result per group."""

    throttle_time_ms: Int32 = wire(default=0)
    results: list[DeletableGroupResult]
