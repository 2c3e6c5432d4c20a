from __future__ import annotations

from millstream.protocol.declare import String, message


@message(coordinator_type=10, versions="0")
class ShareGroupMemberMetadataKey:
    """A member of a share group (KIP-932)."""

    group_id: String
    member_id: String


@message(coordinator_type=10, versions="0", flexible="0+")
class ShareGroupMemberMetadataValue:
    """What the member has said of itself."""

    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
