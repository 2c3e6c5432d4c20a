from __future__ import annotations

from millstream.protocol.declare import String, message, wire


@message(record_type=23, versions="0", flexible="0+")
class BeginTransactionRecord:
    """Starts a metadata transaction: the records up to its end count together or not at all (KIP-868)."""

    name: String | None = wire(default=None, tag=0)
