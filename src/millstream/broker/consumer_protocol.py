"""Whether consumer groups of the new protocol (KIP-848) are served here.

The cluster must have finalized group.version 1, which new directories have; directories from before keep their level
until somebody raises it. And the broker may leave the protocol out by `group.coordinator.rebalance.protocols`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.features import GROUP_VERSION
from millstream.settings import GROUP_COORDINATOR_REBALANCE_PROTOCOLS

if TYPE_CHECKING:
    from millstream.broker.node import Node

NEEDED_LEVEL = 1


def is_consumer_protocol_on(node: Node) -> bool:
    return (
        node.image.features.get(GROUP_VERSION, 0) >= NEEDED_LEVEL
        and "consumer" in node.settings[GROUP_COORDINATOR_REBALANCE_PROTOCOLS]
    )
