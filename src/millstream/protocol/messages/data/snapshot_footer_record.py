from __future__ import annotations

from millstream.protocol.declare import Int16, message


@message(versions="0", flexible="0+")
class SnapshotFooterRecord:
    """The control record that ends a snapshot: without it the snapshot is not whole (KIP-630)."""

    version: Int16
