from __future__ import annotations

from millstream.protocol.declare import Int32, Int64, message


@message(record_type=1, versions="0", flexible="0+")
class UnregisterBrokerRecord:
    """Removes a broker's registration."""

    broker_id: Int32
    broker_epoch: Int64
