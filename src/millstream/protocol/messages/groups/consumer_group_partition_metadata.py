from __future__ import annotations

from millstream.protocol.declare import Int32, String, UuidField, message, struct


@message(coordinator_type=4, versions="0")
class ConsumerGroupPartitionMetadataKey:
    """The topics that a KIP-848 group subscribes to; replaced by the hash in ConsumerGroupMetadataValue (KIP-1101)."""

    group_id: String


@struct
class PartitionMetadata:
    partition: Int32
    racks: list[String]


@struct
class TopicMetadata:
    topic_id: UuidField
    topic_name: String
    num_partitions: Int32
    partition_metadata: list[PartitionMetadata]


@message(coordinator_type=4, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    """Partition counts and racks of those topics. Only logs from before 4.1 hold it."""

    topics: list[TopicMetadata]
