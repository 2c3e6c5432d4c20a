from __future__ import annotations

from millstream.protocol.declare import message


@message(record_type=20, versions="0", flexible="0+")
class NoOpRecord:
    """Changes nothing: the active controller writes it now and then, so that the log moves (KIP-835)."""
