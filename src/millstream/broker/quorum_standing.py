"""Where this node stands in the metadata quorum: who follows it, and how fresh is what it follows itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.metadata_freshness import MetadataFreshness
from millstream.quorum.leading import heard_majority_at_ms
from millstream.quorum.roles import Leader

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.quorum.node import QuorumNode


class QuorumStanding:
    """`position` tells the epoch and the end offset of what this node has replayed."""

    def __init__(self, quorum: QuorumNode, position: Callable[[], tuple[int, int]]) -> None:
        self._quorum = quorum
        self.freshness = MetadataFreshness(position)

    @property
    def epoch(self) -> int:
        return self._quorum.epoch

    @property
    def decides_alone(self) -> bool:
        """Whether this node is the only voter there is."""
        return self._quorum.voters.ids() == (self._quorum.node_id,)

    @property
    def missed_after_ms(self) -> int:
        """The time without news from the leader after which the other voters look for another one."""
        return self._quorum.timeouts.fetch_ms

    def followed_at_ms(self, now_ms: int) -> int | None:
        """When a majority was last known to follow this node, if it is the active controller."""
        role = self._quorum.role
        if not isinstance(role, Leader):
            return None
        return heard_majority_at_ms(role, self._quorum.voters, self._quorum.node_id, now_ms)

    def is_followed(self, now_ms: int) -> bool:
        """Whether no other controller can have been elected in this one's place because it was silent."""
        followed_ms = self.followed_at_ms(now_ms)
        return followed_ms is not None and now_ms - followed_ms < self.missed_after_ms

    def metadata_as_of_ms(self, now_ms: int) -> int:
        """A time for which everything that was committed by then is in the image.

        A leader publishes what its predecessors have committed together with the first record of its own epoch: until
        then its image is only as fresh as what it has heard as a follower.
        """
        followed_ms = self.followed_at_ms(now_ms)
        return self.freshness.as_of_ms() if followed_ms is None or not self._has_committed else followed_ms

    @property
    def _has_committed(self) -> bool:
        role = self._quorum.role
        return isinstance(role, Leader) and self._quorum.high_watermark > role.epoch_start
