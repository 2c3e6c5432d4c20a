from __future__ import annotations

from millstream.protocol.declare import Int32, Int64, String, UuidField, message, wire
from millstream.protocol.uuid import ZERO_UUID


@message(coordinator_type=1, versions="0")
class OffsetCommitKey:
    """A committed offset, by group, topic and partition."""

    group: String
    topic: String
    partition: Int32


@message(coordinator_type=1, versions="0-4", flexible="4+")
class OffsetCommitValue:
    """How far the group has read. v1 alone has a time of expiry. v3: KIP-320, leader epoch. v4: the topic's id."""

    offset: Int64
    leader_epoch: Int32 = wire("3+", default=-1)
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Int64 = wire("1", default=-1)
    topic_id: UuidField = wire("4+", default=ZERO_UUID, tag=0)
