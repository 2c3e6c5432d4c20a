from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, String, message, struct, wire


@struct
class TopicPartitions:
    topic: String
    partitions: list[Int32]


@message(key=43, versions="0-2", flexible="2+", listeners=("broker", "controller"))
class ElectLeadersRequest:
    """Has leaders elected: the preferred ones, or from v1 on unclean ones (KIP-460); null means every partition."""

    election_type: Int8 = wire("1+", default=0)
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: Int32 = wire(default=60000)


@struct
class PartitionResult:
    partition_id: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")


@struct
class ReplicaElectionResult:
    topic: String
    partition_result: list[PartitionResult]


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """One result per partition that was tried. v1: an error for the whole request."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire("1+", default=0)
    replica_election_results: list[ReplicaElectionResult]
