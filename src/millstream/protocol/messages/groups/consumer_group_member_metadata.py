from __future__ import annotations

from millstream.protocol.declare import Bytes, Int32, String, message, struct, wire


@message(coordinator_type=5, versions="0")
class ConsumerGroupMemberMetadataKey:
    """A member of a KIP-848 group, by group and member."""

    group_id: String
    member_id: String


@struct
class ClassicProtocol:
    name: String
    metadata: Bytes


@struct
class ClassicMemberMetadata:
    session_timeout_ms: Int32
    supported_protocols: list[ClassicProtocol]


@message(coordinator_type=5, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """What the member has said of itself; its classic part is there if it came by JoinGroup."""

    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None
    rebalance_timeout_ms: Int32 = wire(default=-1)
    server_assignor: String | None
    # Kafka's definition has a JSON null as default, which its generator takes for no default: an empty structure.
    classic_member_metadata: ClassicMemberMetadata | None = wire(
        default=ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=[]), tag=0
    )
