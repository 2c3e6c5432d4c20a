from __future__ import annotations

from millstream.protocol.declare import Int16, Int64, message


@message(versions="0", flexible="0+")
class SnapshotHeaderRecord:
    """The control record that starts a snapshot (KIP-630)."""

    version: Int16
    last_contained_log_timestamp: Int64
