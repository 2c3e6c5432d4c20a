"""The settings that classic groups obey."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.settings import (
    GROUP_INITIAL_REBALANCE_DELAY_MS,
    GROUP_MAX_SESSION_TIMEOUT_MS,
    GROUP_MAX_SIZE,
    GROUP_MIN_SESSION_TIMEOUT_MS,
)

if TYPE_CHECKING:
    from millstream.settings import Settings

# How long the JoinGroup of a new member may wait. Kafka has no setting for it.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000


class ClassicConfig(NamedTuple):
    """What of the broker's settings a classic group reads, at the moment of a decision."""

    initial_rebalance_delay_ms: int = 3_000
    session_timeout_min_ms: int = 6_000
    session_timeout_max_ms: int = 1_800_000
    size_max: int = 2**31 - 1

    @classmethod
    def of(cls, settings: Settings) -> ClassicConfig:
        return cls(
            initial_rebalance_delay_ms=settings[GROUP_INITIAL_REBALANCE_DELAY_MS],
            session_timeout_min_ms=settings[GROUP_MIN_SESSION_TIMEOUT_MS],
            session_timeout_max_ms=settings[GROUP_MAX_SESSION_TIMEOUT_MS],
            size_max=settings[GROUP_MAX_SIZE],
        )
