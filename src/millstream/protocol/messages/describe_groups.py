from __future__ import annotations

from millstream.protocol.declare import Bool, Bytes, Int16, Int32, String, message, struct, wire


@message(key=15, versions="0-6", flexible="5+", listeners=("broker",))
class DescribeGroupsRequest:
    """Asks for the state of classic groups. v3: KIP-430, authorized operations on request."""

    groups: list[String]
    include_authorized_operations: Bool = wire("3+", default=False)


@struct
class DescribedGroupMember:
    member_id: String
    group_instance_id: String | None = wire("4+", default=None)
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


@struct
class DescribedGroup:
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire("6+", default=None)
    group_id: String
    group_state: String
    protocol_type: String
    protocol_data: String
    members: list[DescribedGroupMember]
    authorized_operations: Int32 = wire("3+", default=-2147483648)


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """State and members of each group. v4: KIP-345, instance ids. v6: KIP-1043, GROUP_ID_NOT_FOUND instead of a dead
    group.
    """

    throttle_time_ms: Int32 = wire("1+", default=0)
    groups: list[DescribedGroup]
