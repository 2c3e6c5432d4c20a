from __future__ import annotations

from millstream.protocol.declare import Int32, message


@message(versions="0")
class EndTxnMarker:
    """The value of a commit or abort marker in a partition's log."""

    coordinator_epoch: Int32
