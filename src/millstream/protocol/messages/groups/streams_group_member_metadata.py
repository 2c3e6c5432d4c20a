from __future__ import annotations

from millstream.protocol.declare import Int32, String, UInt16, message, struct, wire


@message(coordinator_type=19, versions="0")
class StreamsGroupMemberMetadataKey:
    """A member of a Streams group (KIP-1071)."""

    group_id: String
    member_id: String


@struct
class Endpoint:
    host: String
    port: UInt16


@struct
class KeyValue:
    key: String
    value: String


@message(coordinator_type=19, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue:
    """What the member has said of itself: process, endpoint for queries, tags, topology epoch."""

    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    rebalance_timeout_ms: Int32 = wire(default=-1)
    topology_epoch: Int32
    process_id: String
    user_endpoint: Endpoint | None = wire(default=None)
    client_tags: list[KeyValue]
