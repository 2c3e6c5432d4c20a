from __future__ import annotations

from millstream.protocol.declare import Int8, Int32, UuidField, message, wire


@message(record_type=5, versions="0-2", flexible="0+")
class PartitionChangeRecord:
    """What changed of a partition; the fields left out stay as they are.

    v1: KIP-858, directories. v2: KIP-966, eligible leader replicas.
    """

    partition_id: Int32 = wire(default=-1)
    topic_id: UuidField
    isr: list[Int32] | None = wire(default=None, tag=0)
    # -2 is unchanged, -1 is no leader.
    leader: Int32 = wire(default=-2, tag=1)
    replicas: list[Int32] | None = wire(default=None, tag=2)
    removing_replicas: list[Int32] | None = wire(default=None, tag=3)
    adding_replicas: list[Int32] | None = wire(default=None, tag=4)
    # -1 is unchanged, 0 recovered, 1 recovering from an unclean election.
    leader_recovery_state: Int8 = wire(default=-1, tag=5)
    directories: list[UuidField] | None = wire("1+", default=None, tag=8)
    eligible_leader_replicas: list[Int32] | None = wire("2+", default=None, tag=6)
    last_known_elr: list[Int32] | None = wire("2+", default=None, tag=7)
