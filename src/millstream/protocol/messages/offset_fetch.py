from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, Int64, String, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class OffsetFetchRequestTopic:
    name: String
    partition_indexes: list[Int32]


@struct
class OffsetFetchRequestTopics:
    name: String = wire("8-9", default="")
    topic_id: UuidField = wire("10+", default=ZERO_UUID)
    partition_indexes: list[Int32]


@struct
class OffsetFetchRequestGroup:
    group_id: String
    member_id: String | None = wire("9+", default=None)
    member_epoch: Int32 = wire("9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None


@message(key=9, versions="1-10", flexible="6+", listeners=("broker",))
class OffsetFetchRequest:
    """Reads how far groups have read; null topics ask for all (v2).

    v7: KIP-447, wait for open transactions. v8: KIP-709, many groups at once. v9: KIP-848, member epochs. v10:
    topic ids.
    """

    group_id: String = wire("0-7", default="")
    topics: list[OffsetFetchRequestTopic] | None = wire("0-7", default=[], nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = wire("8+", default=[])
    require_stable: Bool = wire("7+", default=False)


@struct
class OffsetFetchResponsePartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = wire("5-7", default=-1)
    metadata: String | None
    error_code: Int16 = wire(default=0)


@struct
class OffsetFetchResponseTopic:
    name: String
    partitions: list[OffsetFetchResponsePartition]


@struct
class OffsetFetchResponsePartitions:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = wire(default=-1)
    metadata: String | None
    error_code: Int16 = wire(default=0)


@struct
class OffsetFetchResponseTopics:
    name: String = wire("8-9", default="")
    topic_id: UuidField = wire("10+", default=ZERO_UUID)
    partitions: list[OffsetFetchResponsePartitions]


@struct
class OffsetFetchResponseGroup:
    group_id: String
    topics: list[OffsetFetchResponseTopics]
    error_code: Int16 = wire(default=0)


@message(key=9, versions="1-10", flexible="6+")
class OffsetFetchResponse:
    """Offsets with their notes; -1 where nothing was stored. v8: one list per group."""

    throttle_time_ms: Int32 = wire("3+", default=0)
    topics: list[OffsetFetchResponseTopic] = wire("0-7", default=[])
    error_code: Int16 = wire("2-7", default=0)
    groups: list[OffsetFetchResponseGroup] = wire("8+", default=[])
