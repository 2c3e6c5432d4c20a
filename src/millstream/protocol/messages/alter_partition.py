from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, Int64, UuidField, message, struct, wire


@struct
class BrokerState:
    broker_id: Int32
    broker_epoch: Int64 = wire(default=-1)


@struct
class PartitionData:
    partition_index: Int32
    leader_epoch: Int32
    new_isr: list[Int32] = wire("0-2", default=[])
    new_isr_with_epochs: list[BrokerState] = wire("3+", default=[])
    leader_recovery_state: Int8 = wire(default=0)
    partition_epoch: Int32


@struct
class TopicData:
    topic_id: UuidField
    partitions: list[PartitionData]


@message(key=56, versions="2-3", flexible="0+", listeners=("controller",))
class AlterPartitionRequest:
    """A leader asks the controller to change the ISR of partitions that it leads (KIP-497).

    v2: KIP-841, topic ids. v3: KIP-903, each member comes with its broker epoch, so that a restarted one is
    noticed.
    """

    broker_id: Int32
    broker_epoch: Int64 = wire(default=-1)
    topics: list[TopicData]


@struct
class AlterPartitionResponsePartitionData:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    leader_id: Int32
    leader_epoch: Int32
    isr: list[Int32]
    leader_recovery_state: Int8 = wire(default=0)
    partition_epoch: Int32


@struct
class AlterPartitionResponseTopicData:
    topic_id: UuidField
    partitions: list[AlterPartitionResponsePartitionData]


@message(key=56, versions="2-3", flexible="0+")
class AlterPartitionResponse:
    """The partition's state after the change, or why there was none."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    topics: list[AlterPartitionResponseTopicData]
