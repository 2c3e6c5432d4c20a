"""The states of a classic group."""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """As Kafka's tools print them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
