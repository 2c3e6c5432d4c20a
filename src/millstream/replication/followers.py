"""What a leader knows of one follower: how far it has come, and when it had last caught up.

PURE. "Caught up" is Kafka's measure, which is of time and not of records: a follower has caught up at the time of a
fetch that asked for the leader's end; or at the time of its fetch before, if it now asks for what was the end then. A
follower that fetches steadily under load is a little behind at every look and still counts as in sync.
"""

from __future__ import annotations

NOT_KNOWN = -1
NEVER_MS = -(2**62)


class Follower:
    """One follower, in one epoch of its leader: nothing is believed that was said in another one."""

    __slots__ = (
        "_fetched_ms", "_leader_end_then", "broker_epoch", "caught_up_ms", "end_offset", "holds_back", "id",
        "start_offset",
    )  # fmt: skip

    def __init__(self, follower_id: int, *, in_sync: bool, now_ms: int) -> None:
        self.id = follower_id
        self.end_offset = NOT_KNOWN
        self.start_offset = NOT_KNOWN
        self.broker_epoch = NOT_KNOWN
        # Who is in sync at the beginning gets the whole time to show it.
        self.caught_up_ms = now_ms if in_sync else NEVER_MS
        # Not in sync, but so near that the high watermark waits for it: see PartitionLeader.
        self.holds_back = False
        self._fetched_ms = NEVER_MS
        self._leader_end_then = NOT_KNOWN

    def fetched(self, end_offset: int, start_offset: int, broker_epoch: int, leader_end: int, now_ms: int) -> None:
        if end_offset >= leader_end:
            self.caught_up_ms = now_ms
        elif end_offset >= self._leader_end_then:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.end_offset = end_offset
        self.start_offset = start_offset
        self.broker_epoch = broker_epoch
        self._fetched_ms = now_ms
        self._leader_end_then = leader_end

    def is_caught_up(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        """One that has everything needs not say so again and again."""
        return self.end_offset == leader_end or now_ms - self.caught_up_ms <= lag_max_ms
