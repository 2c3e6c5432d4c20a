from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, message, struct, wire


@message(key=16, versions="0-5", flexible="3+", listeners=("broker",))
class ListGroupsRequest:
    """Lists the groups that the broker coordinates. v4: KIP-518, by state. v5: KIP-848, by type."""

    states_filter: list[String] = wire("4+", default=[])
    types_filter: list[String] = wire("5+", default=[])


@struct
class ListedGroup:
    group_id: String
    protocol_type: String
    group_state: String = wire("4+", default="")
    group_type: String = wire("5+", default="")


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """Groups with their protocol types, from v4 on with states, from v5 on with types."""

    throttle_time_ms: Int32 = wire("1+", default=0)
    error_code: Int16 = wire(default=0)
    groups: list[ListedGroup]
