"""The limits on replication, on the side of the leader and on that of the follower.

They hold for replicas that their topic names, and only until those are in sync: a limit that kept a replica from
staying in sync would cost more than it saves. Where no rate is set, asking costs one look at a setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.replication.throttle import Throttle, Turns, is_throttled
from millstream.settings import (
    FOLLOWER_REPLICATION_THROTTLED_RATE,
    FOLLOWER_REPLICATION_THROTTLED_REPLICAS,
    LEADER_REPLICATION_THROTTLED_RATE,
    LEADER_REPLICATION_THROTTLED_REPLICAS,
)

if TYPE_CHECKING:
    from millstream.broker.node import Node
    from millstream.broker.partition import Partition


class ReplicaThrottles:
    """Both directions of one broker."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._sent = Throttle()
        self._turns = Turns()
        self._taken = Throttle()

    # --- as the leader

    def limits_sending(self, partition: Partition, replica: int) -> bool:
        """Whether what is sent to this follower counts. The topic names the replicas that send: this one, where it
        leads."""
        rate = self._node.settings[LEADER_REPLICATION_THROTTLED_RATE]
        if not self._sent.follow(rate, self._now_ms()):
            return False
        if partition.leader is None or replica in partition.leader.isr:
            return False
        settings = self._node.topic_settings(self._node.image, partition.topic)
        return is_throttled(settings[LEADER_REPLICATION_THROTTLED_REPLICAS], partition.index, self._node.node_id)

    def send(self, records: bytes, replica: int) -> bytes | None:
        """The records, if they may be sent to this follower now."""
        now_ms = self._now_ms()
        if not self._turns.asks(replica, now_ms) or self._sent.is_exceeded(now_ms):
            return None
        self._turns.served(replica)
        self._sent.took(len(records), now_ms)
        return records

    # --- as a follower

    def pause_after_taking(self, partition: Partition, count_bytes: int) -> int:
        """The batches of a partition were taken; for how many milliseconds not to ask for more of it."""
        rate = self._node.settings[FOLLOWER_REPLICATION_THROTTLED_RATE]
        if not self._taken.follow(rate, self._now_ms()):
            return 0
        image = self._node.image
        state = image.topics.partition(partition.topic_id, partition.index)
        if state is None or self._node.node_id in state.isr:
            return 0
        entries = self._node.topic_settings(image, partition.topic)[FOLLOWER_REPLICATION_THROTTLED_REPLICAS]
        if not is_throttled(entries, partition.index, self._node.node_id):
            return 0
        self._taken.took(count_bytes, self._now_ms())
        return self._taken.pause_ms(self._now_ms())

    def _now_ms(self) -> int:
        return self._node.ports.clock.monotonic_ms()
