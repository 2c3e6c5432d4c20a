from __future__ import annotations

from millstream.protocol.declare import Int32, String, UuidField, message, struct


@message(coordinator_type=15, versions="0")
class ShareGroupStatePartitionMetadataKey:
    """Which share partitions of a group have state at the share coordinator (KIP-932)."""

    group_id: String


@struct
class TopicPartitionsInfo:
    topic_id: UuidField
    topic_name: String
    partitions: list[Int32]


@struct
class TopicInfo:
    topic_id: UuidField
    topic_name: String


@message(coordinator_type=15, versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    """Partitions being set up, set up, and topics being removed."""

    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]
    deleting_topics: list[TopicInfo]
