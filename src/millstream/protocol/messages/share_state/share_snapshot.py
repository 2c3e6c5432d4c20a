from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, Int64, String, UuidField, message, struct, wire


@message(coordinator_type=0, versions="0")
class ShareSnapshotKey:
    """A share partition whose whole state this record holds (KIP-932)."""

    group_id: String
    topic_id: UuidField
    partition: Int32


@struct
class StateBatch:
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


@message(coordinator_type=0, versions="0", flexible="0+")
class ShareSnapshotValue:
    """State epoch, start offset and the batches in flight. KIP-1226: how many deliveries are complete."""

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = wire(default=-1, tag=0)
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: list[StateBatch]
