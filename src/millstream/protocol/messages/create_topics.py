from __future__ import annotations

from millstream.protocol.declare import Bool, Int8, Int16, Int32, String, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class CreatableReplicaAssignment:
    partition_index: Int32
    broker_ids: list[Int32]


@struct
class CreatableTopicConfig:
    name: String
    value: String | None


@struct
class CreatableTopic:
    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]


@message(key=19, versions="2-7", flexible="5+", listeners=("broker", "controller"))
class CreateTopicsRequest:
    """Creates topics. v4: KIP-464, -1 leaves partitions and replicas to the broker's defaults. v6: KIP-599, may be
    throttled.
    """

    topics: list[CreatableTopic]
    timeout_ms: Int32 = wire(default=60000)
    validate_only: Bool = wire(default=False)


@struct
class CreatableTopicConfigs:
    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = wire(default=-1)
    is_sensitive: Bool


@struct
class CreatableTopicResult:
    name: String
    topic_id: UuidField = wire("7+", default=ZERO_UUID)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    topic_config_error_code: Int16 = wire("5+", default=0, tag=0)
    num_partitions: Int32 = wire("5+", default=-1)
    replication_factor: Int16 = wire("5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = wire("5+", default=[])


@message(key=19, versions="2-7", flexible="5+")
class CreateTopicsResponse:
    """One result per topic. v5: KIP-525, the settings that the topic got. v7: its id."""

    throttle_time_ms: Int32 = wire(default=0)
    topics: list[CreatableTopicResult]
