from __future__ import annotations

from millstream.protocol.declare import Bytes, Int32, String, message, struct, wire


@struct
class TopicPartition:
    topic: String
    partitions: list[Int32]


@message(versions="0-3")
class ConsumerProtocolSubscription:
    """What a classic consumer tells its group's leader, inside of JoinGroup's opaque bytes.

    An int16 version stands before it. v1: KIP-429, owned partitions. v2: KIP-792, their generation. v3: KIP-881,
    the rack.
    """

    topics: list[String]
    user_data: Bytes | None = wire(default=None)
    owned_partitions: list[TopicPartition] = wire("1+", default=[])
    generation_id: Int32 = wire("2+", default=-1)
    rack_id: String | None = wire("3+", default=None)
