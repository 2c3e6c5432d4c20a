from __future__ import annotations

from millstream.protocol.declare import Bytes, Int32, Int64, String, message, struct, wire


@message(coordinator_type=2, versions="0")
class GroupMetadataKey:
    """A classic group."""

    group: String


@struct
class MemberMetadata:
    member_id: String
    group_instance_id: String | None = wire("3+", default=None)
    client_id: String
    client_host: String
    rebalance_timeout: Int32 = wire("1+", default=-1)
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


@message(coordinator_type=2, versions="0-4", flexible="4+")
class GroupMetadataValue:
    """Generation, protocol, leader and members of a classic group. v3: KIP-345, instance ids. v4: flexible."""

    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp: Int64 = wire("2+", default=-1)
    members: list[MemberMetadata]
