"""How long a client is asked to wait: the one place that `throttle_time_ms` comes from.

Quotas are not enforced yet (those stored in the metadata are kept). When they are, this answers with a delay, and
`Connection` tells it to the client and reads nothing from it for that long, as Kafka does since KIP-219.
"""

from __future__ import annotations

from typing import Protocol


class Quotas(Protocol):
    """Asked once for every answer."""

    def throttle_ms(self, principal: str, api_key: int) -> int: ...


class NoQuotas:
    """Nobody waits."""

    def throttle_ms(self, principal: str, api_key: int) -> int:
        return 0
