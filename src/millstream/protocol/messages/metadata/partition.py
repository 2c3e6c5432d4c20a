from __future__ import annotations

from millstream.protocol.declare import Int8, Int32, UuidField, message, wire


@message(record_type=3, versions="0-2", flexible="0+")
class PartitionRecord:
    """A partition's whole state. v1: KIP-858, directories. v2: KIP-966, eligible leader replicas."""

    partition_id: Int32 = wire(default=-1)
    topic_id: UuidField
    replicas: list[Int32]
    isr: list[Int32]
    removing_replicas: list[Int32]
    adding_replicas: list[Int32]
    leader: Int32 = wire(default=-1)
    leader_recovery_state: Int8 = wire(default=0, tag=0)
    leader_epoch: Int32 = wire(default=-1)
    partition_epoch: Int32 = wire(default=-1)
    directories: list[UuidField] = wire("1+", default=[])
    eligible_leader_replicas: list[Int32] | None = wire("2+", default=None, tag=1)
    last_known_elr: list[Int32] | None = wire("2+", default=None, tag=2)
