from __future__ import annotations

from millstream.protocol.declare import String, message, wire


@message(record_type=25, versions="0", flexible="0+")
class AbortTransactionRecord:
    """Ends a metadata transaction whose records do not count (KIP-868)."""

    reason: String | None = wire(default=None, tag=0)
