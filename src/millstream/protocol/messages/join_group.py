from __future__ import annotations

from millstream.protocol.declare import Bool, Bytes, Int16, Int32, String, message, struct, wire


@struct
class JoinGroupRequestProtocol:
    name: String
    metadata: Bytes


@message(key=11, versions="0-9", flexible="6+", listeners=("broker",))
class JoinGroupRequest:
    """A member asks to enter a classic group; the answer waits for the rebalance.

    v1: KIP-62, a rebalance timeout of its own. v4: KIP-394, a new member is first told its id. v5: KIP-345, static
    members.
    """

    group_id: String
    session_timeout_ms: Int32
    # Where it is missing, the session timeout counts.
    rebalance_timeout_ms: Int32 = wire("1+", default=-1)
    member_id: String
    group_instance_id: String | None = wire("5+", default=None)
    protocol_type: String
    protocols: list[JoinGroupRequestProtocol]
    reason: String | None = wire("8+", default=None)


@struct
class JoinGroupResponseMember:
    member_id: String
    group_instance_id: String | None = wire("5+", default=None)
    metadata: Bytes


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """The new generation; its leader gets all members, to assign partitions to them.

    v7: KIP-559, the protocol's type. v9: a leader may be told to skip the assignment.
    """

    throttle_time_ms: Int32 = wire("2+", default=0)
    error_code: Int16 = wire(default=0)
    generation_id: Int32 = wire(default=-1)
    protocol_type: String | None = wire("7+", default=None)
    protocol_name: String | None = wire(nullable="7+")
    leader: String
    skip_assignment: Bool = wire("9+", default=False)
    member_id: String
    members: list[JoinGroupResponseMember]
