"""Which replica a consumer should read from (KIP-392): one in its own rack, if a selector was configured.

The one selector that there is, by the name of Apache Kafka's class: among the replicas in sync that stand in the
consumer's rack and hold the offset, the leader if it is one of them, else the one that is furthest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.settings import REPLICA_SELECTOR_CLASS

if TYPE_CHECKING:
    from millstream.broker.node import Node
    from millstream.replication.leader import PartitionLeader

RACK_AWARE = "RackAwareReplicaSelector"


def selects_by_rack(node: Node) -> bool:
    selector = node.settings[REPLICA_SELECTOR_CLASS]
    return selector is not None and selector.rpartition(".")[2] == RACK_AWARE


def closest_replica(leader: PartitionLeader, offset: int, rack: str, node: Node) -> int | None:
    """The follower to read from, or None for the leader itself."""
    if not selects_by_rack(node):
        return None
    brokers = node.image.brokers
    own = brokers.get(leader.node_id)
    if own is not None and own.rack == rack:
        return None
    near = []
    for replica in leader.isr:
        follower, broker = leader.followers.get(replica), brokers.get(replica)
        if follower is None or broker is None or broker.rack != rack or not broker.active:
            continue
        if follower.start_offset <= offset <= follower.end_offset:
            near.append(follower)
    if not near:
        return None
    return max(near, key=lambda follower: (follower.end_offset, follower.caught_up_ms, -follower.id)).id
