from __future__ import annotations

from millstream.protocol.declare import Bytes, Int16, Int32, String, message, struct, wire


@struct
class SyncGroupRequestAssignment:
    member_id: String
    assignment: Bytes


@message(key=14, versions="0-5", flexible="4+", listeners=("broker",))
class SyncGroupRequest:
    """The leader of a classic group sends the assignment; the others ask for theirs.

    v3: KIP-345. v5: KIP-559, protocol type and name, refused if they are not the group's.
    """

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = wire("3+", default=None)
    protocol_type: String | None = wire("5+", default=None)
    protocol_name: String | None = wire("5+", default=None)
    assignments: list[SyncGroupRequestAssignment]


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """The member's assignment."""

    throttle_time_ms: Int32 = wire("1+", default=0)
    error_code: Int16 = wire(default=0)
    protocol_type: String | None = wire("5+", default=None)
    protocol_name: String | None = wire("5+", default=None)
    assignment: Bytes
