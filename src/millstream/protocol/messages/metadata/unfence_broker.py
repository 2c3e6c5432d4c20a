from __future__ import annotations

from millstream.protocol.declare import Int32, Int64, message


@message(record_type=8, versions="0", flexible="0+")
class UnfenceBrokerRecord:
    """Unfences a broker. Older releases wrote it; BrokerRegistrationChangeRecord has replaced it."""

    id: Int32
    epoch: Int64
