from __future__ import annotations

from millstream.protocol.declare import Bytes, Int32, String, message, struct, wire


@struct
class TopicPartition:
    topic: String
    partitions: list[Int32]


@message(versions="0-3")
class ConsumerProtocolAssignment:
    """What a classic consumer group's leader hands to a member, inside of SyncGroup's opaque bytes.

    An int16 version stands before it; readers parse unknown newer versions as the newest that they know.
    """

    assigned_partitions: list[TopicPartition]
    user_data: Bytes | None = wire(default=None)
