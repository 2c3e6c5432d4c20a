"""The rules of a partition's leader: who is in sync, and how far the high watermark may go.

PURE: a set of synchronous guards that allocate nothing on the hot path. The partition (broker/partition.py) owns the
log and the waiting clients; it tells this class how far the leader's own log and each follower have come, and is told
the high watermark.

The rules (KIP-320, KIP-497, KIP-903, KIP-966):

- The high watermark is the smallest end offset over the *maximal* ISR: the committed one, and whoever the controller
  was asked to add, since it may have agreed already. It counts only what was acknowledged in this leader's epoch, never
  goes back, and stands still while fewer replicas are in sync than `min.insync.replicas` asks for.
- It also waits for a follower that could be added and has just caught up. Otherwise a leader that is alone in sync and
  under load would be ahead of everybody for ever, and nobody could come back.
- A follower may be added once it has reached the high watermark and the start of this leader's epoch: by then it has
  all that was committed before, whatever this leader's own, lagging mark says.
- Who leaves the ISR counts until the controller has agreed: it may be elected until then.
- A change of the ISR is proposed with the partition's epoch, and with the broker epoch that each follower fetched with:
  a follower that was restarted since then may have lost what it acknowledged, and the controller refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.protocol.errors import FencedLeaderEpoch, NotEnoughReplicas, NotLeader, UnknownLeaderEpoch
from millstream.replication.followers import NOT_KNOWN, Follower

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """What the controller is asked for: these in sync, each with the broker epoch that it was seen with."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]

    @property
    def members(self) -> tuple[int, ...]:
        return tuple(member for member, _ in self.isr)


class PartitionLeader:
    """One leader in one epoch. A new epoch gets a new object."""

    __slots__ = (
        "_enough", "_holding", "epoch", "epoch_start_offset", "followers", "high_watermark", "isr", "min_isr",
        "node_id", "own_end", "partition_epoch", "proposal", "replicas",
    )  # fmt: skip

    def __init__(
        self, *, node_id: int, epoch: int, replicas: tuple[int, ...], isr: tuple[int, ...], min_isr: int,
        own_end: int, high_watermark: int, partition_epoch: int = 0, epoch_start_offset: int = 0, now_ms: int = 0,
    ) -> None:  # fmt: skip
        self.node_id = node_id
        self.epoch = epoch
        self.partition_epoch = partition_epoch
        self.epoch_start_offset = epoch_start_offset
        self.replicas = replicas
        self.isr = isr
        self.min_isr = min_isr
        self.own_end = own_end
        self.high_watermark = high_watermark
        self.proposal: IsrProposal | None = None
        self.followers = {
            replica: Follower(replica, in_sync=replica in isr, now_ms=now_ms)
            for replica in replicas
            if replica != node_id
        }
        self._settle()

    # --- what clients and followers are refused for

    @property
    def effective_min_isr(self) -> int:
        """A partition with fewer replicas than `min.insync.replicas` needs all that it has, not more."""
        return min(self.min_isr, len(self.replicas))

    @property
    def has_enough_in_sync(self) -> bool:
        return self._enough

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client whose idea of the leader's epoch is older, or newer, than this leader."""
        check_epoch(self.epoch, current_leader_epoch)

    def check_enough_in_sync(self) -> None:
        """Refuse an acks=all append that could not be acknowledged."""
        if not self._enough:
            raise NotEnoughReplicas(f"{len(self.isr)} replicas are in sync, {self.effective_min_isr} are required")

    def follower(self, replica: int, current_leader_epoch: int) -> Follower:
        """The follower with this id. One that is not known may come from newer metadata than ours: it tries again."""
        follower = self.followers.get(replica)
        if follower is None:
            message = f"broker {replica} is no replica of this partition, as far as its leader knows"
            raise NotLeader(message) if current_leader_epoch == NOT_KNOWN else UnknownLeaderEpoch(message)
        return follower

    # --- how far the logs have come

    def own_log_reached(self, end_offset: int) -> bool:
        """The leader's own log holds everything below `end_offset` (durably, where that was asked for)."""
        self.own_end = end_offset
        return self._advance()

    def follower_fetched(
        self,
        follower: Follower,
        end_offset: int,
        *,
        start_offset: int = NOT_KNOWN,
        broker_epoch: int = NOT_KNOWN,
        leader_end: int,
        now_ms: int,
    ) -> bool:
        """A follower asked for `end_offset`, so it holds everything below. Whether the high watermark moved."""
        if broker_epoch < follower.broker_epoch:
            # A request that was under way while the follower was restarted (KAFKA-15221): it speaks for no log.
            raise NotLeader(f"broker {follower.id} has fetched with epoch {follower.broker_epoch} since")
        moved = end_offset != follower.end_offset
        follower.fetched(end_offset, start_offset, broker_epoch, leader_end, now_ms)
        return moved and self._advance()

    @property
    def low_watermark(self) -> int:
        """Where the shortest of the followers' logs begins, as far as they have said; for who waits for a deletion."""
        return min((follower.start_offset for follower in self.followers.values()), default=2**63 - 1)

    # --- who is in sync

    def may_join(self, follower: Follower) -> bool:
        """Whether what the follower holds is enough to be in sync. (Its broker must be alive, too.)"""
        return (
            self.proposal is None
            and follower.id not in self.isr
            and follower.end_offset >= self.high_watermark
            and follower.end_offset >= self.epoch_start_offset
        )

    def waits_for(self, joiner: Follower, *, waits: bool) -> bool:
        """Let the high watermark wait, or no longer, for one who could join; whether it moved."""
        if joiner.holds_back == waits:
            return False
        joiner.holds_back = waits
        return self._settle()

    def joiners(self) -> list[Follower]:
        """Those whom the high watermark waits for though they are not in sync yet."""
        return [follower for follower in self.followers.values() if follower.holds_back]

    def lagging(self, leader_end: int, now_ms: int, lag_max_ms: int) -> tuple[int, ...]:
        """Members of the ISR that have not caught up for too long."""
        return tuple(
            replica
            for replica in self.isr
            if replica != self.node_id
            and replica in self.followers
            and not self.followers[replica].is_caught_up(leader_end, now_ms, lag_max_ms)
        )

    def propose(self, members: Iterable[int], own_broker_epoch: int) -> IsrProposal:
        """Ask for another ISR. Until there is an answer, both the old members and the new ones count."""
        assert self.proposal is None, "one proposal at a time"
        epochs = {self.node_id: own_broker_epoch} | {
            follower.id: follower.broker_epoch for follower in self.followers.values()
        }
        self.proposal = IsrProposal(
            self.epoch, self.partition_epoch, tuple((member, epochs[member]) for member in members)
        )
        self._settle()
        return self.proposal

    def withdraw(self, proposal: IsrProposal) -> bool:
        """The controller refused for good. Whether the high watermark moved."""
        if self.proposal is not proposal:
            return False
        self.proposal = None
        return self._settle()

    def committed(self, *, isr: tuple[int, ...], partition_epoch: int, replicas: tuple[int, ...] | None = None) -> bool:
        """The controller decided, as its answer or the metadata tell. Older news than we have are passed over.

        Whether the high watermark moved.
        """
        if partition_epoch < self.partition_epoch:
            return False
        if partition_epoch > self.partition_epoch:
            self.partition_epoch = partition_epoch
            self.proposal = None
            for member in {*self.isr, *isr} & self.followers.keys():
                # Who came in counts as a member now; nobody waits for one who was put out before it has asked again.
                self.followers[member].holds_back = False
            self.isr = isr
        if replicas is not None and replicas != self.replicas:
            self.replicas = replicas
            known = self.followers
            self.followers = {
                replica: known.get(replica) or Follower(replica, in_sync=False, now_ms=0)
                for replica in replicas
                if replica != self.node_id
            }
        return self._settle()

    def min_isr_changed(self, min_isr: int) -> bool:
        self.min_isr = min_isr
        return self._settle()

    # --- the high watermark

    def _settle(self) -> bool:
        """Work out once who holds the mark back, so that appends need not."""
        counted = set(self.isr)
        if self.proposal is not None:
            counted.update(self.proposal.members)
        self._enough = len(self.isr) >= self.effective_min_isr
        self._holding = tuple(
            follower for follower in self.followers.values() if follower.id in counted or follower.holds_back
        )
        return self._advance()

    def _advance(self) -> bool:
        """Whether the high watermark moved."""
        if not self._enough:
            return False
        reached = self.own_end
        for follower in self._holding:
            reached = min(reached, follower.end_offset)
        if reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True


def check_epoch(epoch: int, current_leader_epoch: int) -> None:
    """Refuse whoever means another leader epoch than this replica is in."""
    if current_leader_epoch in (-1, epoch):
        return
    if current_leader_epoch < epoch:
        raise FencedLeaderEpoch(f"leader epoch {current_leader_epoch} is old: it is {epoch}")
    raise UnknownLeaderEpoch(f"leader epoch {current_leader_epoch} is not known here yet: it is {epoch}")
