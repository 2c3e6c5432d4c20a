from __future__ import annotations

from millstream.protocol.declare import Int32, Int64, String, message


@message(coordinator_type=0, versions="0")
class LegacyOffsetCommitKey:
    """A committed offset in its oldest key; only very old logs hold it."""

    group: String
    topic: String
    partition: Int32


@message(coordinator_type=0, versions="0")
class LegacyOffsetCommitValue:
    """The committed offset that belongs to a legacy key."""

    offset: Int64
    metadata: String
    commit_timestamp: Int64
