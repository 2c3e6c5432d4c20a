from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, message, struct, wire


@struct
class MemberIdentity:
    member_id: String
    group_instance_id: String | None = wire(default=None)
    reason: String | None = wire("5+", default=None)


@message(key=13, versions="0-5", flexible="4+", listeners=("broker",))
class LeaveGroupRequest:
    """Members leave a classic group. v3: KIP-345, several at once, by instance id too. v5: KIP-800, with a reason."""

    group_id: String
    member_id: String = wire("0-2", default="")
    members: list[MemberIdentity] = wire("3+", default=[])


@struct
class MemberResponse:
    member_id: String
    group_instance_id: String | None
    error_code: Int16 = wire(default=0)


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """From v3 on one result per member."""

    throttle_time_ms: Int32 = wire("1+", default=0)
    error_code: Int16 = wire(default=0)
    members: list[MemberResponse] = wire("3+", default=[])
