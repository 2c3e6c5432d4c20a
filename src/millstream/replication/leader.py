"""The rules of a partition's leader: who is in sync, and how far the high watermark may go.

PURE: a set of synchronous guards that allocate nothing on the hot path. The partition (broker/partition.py) owns the
log and the waiting clients; it tells this class how far the leader's own log and each follower have come, and is told
the high watermark.

The rules (KIP-320, KIP-966): the high watermark is the smallest end offset over the in-sync replicas, counts only
what was acknowledged in this leader's epoch, never goes back, and stands still while fewer replicas are in sync than
`min.insync.replicas` asks for.
"""

from __future__ import annotations

from millstream.protocol.errors import FencedLeaderEpoch, NotEnoughReplicas, UnknownLeaderEpoch


class PartitionLeader:
    """One leader in one epoch. A new epoch gets a new object."""

    __slots__ = ("_follower_ends", "_isr", "epoch", "high_watermark", "min_isr", "node_id", "own_end", "replicas")

    def __init__(
        self, *, node_id: int, epoch: int, replicas: tuple[int, ...], isr: tuple[int, ...], min_isr: int,
        own_end: int, high_watermark: int,
    ) -> None:  # fmt: skip
        self.node_id = node_id
        self.epoch = epoch
        self.replicas = replicas
        self.min_isr = min_isr
        self.own_end = own_end
        self.high_watermark = high_watermark
        self._isr = isr
        self._follower_ends = {replica: -1 for replica in replicas if replica != node_id}

    @property
    def isr(self) -> tuple[int, ...]:
        return self._isr

    @property
    def effective_min_isr(self) -> int:
        """A partition with fewer replicas than `min.insync.replicas` needs all that it has, not more."""
        return min(self.min_isr, len(self.replicas))

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client whose idea of the leader's epoch is older, or newer, than this leader."""
        if current_leader_epoch in (-1, self.epoch):
            return
        if current_leader_epoch < self.epoch:
            raise FencedLeaderEpoch(f"leader epoch {current_leader_epoch} is old: it is {self.epoch}")
        raise UnknownLeaderEpoch(f"leader epoch {current_leader_epoch} is not known here yet: it is {self.epoch}")

    def check_enough_in_sync(self) -> None:
        """Refuse an acks=all append that could not be acknowledged."""
        if len(self._isr) < self.effective_min_isr:
            raise NotEnoughReplicas(f"{len(self._isr)} replicas are in sync, {self.effective_min_isr} are required")

    def own_log_reached(self, end_offset: int) -> bool:
        """The leader's own log holds everything below `end_offset` (durably, where that was asked for)."""
        self.own_end = end_offset
        return self._advance()

    def follower_reached(self, replica: int, end_offset: int) -> bool:
        """A follower asked for `end_offset`, so it holds everything below."""
        self._follower_ends[replica] = end_offset
        return self._advance()

    def isr_changed(self, isr: tuple[int, ...]) -> bool:
        self._isr = isr
        return self._advance()

    def _advance(self) -> bool:
        """Whether the high watermark moved."""
        if len(self._isr) < self.effective_min_isr:
            return False
        reached = self.own_end
        if len(self._isr) > 1:
            for replica in self._isr:
                if replica != self.node_id:
                    reached = min(reached, self._follower_ends[replica])
        if reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True
