from __future__ import annotations

from millstream.protocol.declare import message


@message(record_type=24, versions="0", flexible="0+")
class EndTransactionRecord:
    """Ends a metadata transaction whose records count (KIP-868)."""
