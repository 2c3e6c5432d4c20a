from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, String, message, struct, wire


@struct
class CreatePartitionsAssignment:
    broker_ids: list[Int32]


@struct
class CreatePartitionsTopic:
    name: String
    count: Int32
    assignments: list[CreatePartitionsAssignment] | None


@message(key=37, versions="0-3", flexible="2+", listeners=("broker", "controller"))
class CreatePartitionsRequest:
    """Gives topics more partitions, up to the count that is named. v3: KIP-599, may be throttled."""

    topics: list[CreatePartitionsTopic]
    timeout_ms: Int32
    validate_only: Bool


@struct
class CreatePartitionsTopicResult:
    name: String
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """One result per topic."""

    throttle_time_ms: Int32 = wire(default=0)
    results: list[CreatePartitionsTopicResult]
