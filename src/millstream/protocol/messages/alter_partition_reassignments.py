from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, String, message, struct, wire


@struct
class ReassignablePartition:
    partition_index: Int32
    replicas: list[Int32] | None = wire(default=None)


@struct
class ReassignableTopic:
    name: String
    partitions: list[ReassignablePartition]


@message(key=45, versions="0-1", flexible="0+", listeners=("broker", "controller"))
class AlterPartitionReassignmentsRequest:
    """Starts moving partitions to other brokers, or stops that (KIP-455). v1: may keep the replication factor."""

    timeout_ms: Int32 = wire(default=60000)
    allow_replication_factor_change: Bool = wire("1+", default=True)
    topics: list[ReassignableTopic]


@struct
class ReassignablePartitionResponse:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")


@struct
class ReassignableTopicResponse:
    name: String
    partitions: list[ReassignablePartitionResponse]


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    """One result per partition; the moving itself takes its time."""

    throttle_time_ms: Int32 = wire(default=0)
    allow_replication_factor_change: Bool = wire("1+", default=True)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    responses: list[ReassignableTopicResponse]
