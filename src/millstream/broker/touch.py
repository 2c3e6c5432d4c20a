"""Whether this broker may speak for the cluster: its session stands, and it knows what came before.

A broker that no controller hears of may still be heard by clients. Others may have taken over what it leads by then, so
it is not *in touch*, and whoever would say something final to a client in the name of the cluster asks for that first.

- A broker whose heartbeat was answered is not fenced within a session's time from when it was sent. Controllers answer
  heartbeats only while a majority followed them within the quorum's fetch timeout: those who only miss one elect the
  next after that is over, and it gives every broker a whole session.
- Except the one that was active itself, which has to be heard of soon (broker_watch.py). So the active controller's own
  broker is in touch no longer than a majority follows it, however long a session is.
- Who was away for longer than that may have been replaced meanwhile. It is in touch again when its metadata holds all
  that was committed up to the answer that it got on its return.

There is one exception. Voters whose connections to the active controller are refused at once take it for gone, and
elect another within about 0.3 s (`LeaderLost`). If it lives, because somebody in between refuses, then it and whoever
reaches only it hold themselves to be in touch for up to the quorum's fetch timeout longer than they are.

And it is about being fenced. Leadership that moves while all are well (a preferred leader's election, a reassignment)
is heard of through the metadata, a moment later, as ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.settings import BROKER_SESSION_TIMEOUT_MS

if TYPE_CHECKING:
    from millstream.broker.node import Node

_NEVER_MS = -1
_NO_EPOCH = -1


class Touch:
    """See the module's docstring."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._until_ms = _NEVER_MS
        # The epoch in which this node was the controller that answered the last heartbeat.
        self._led_epoch = _NO_EPOCH
        self._as_of_ms = _NEVER_MS

    def heard_of(self, sent_ms: int, answered_ms: int) -> None:
        """The active controller took a heartbeat that was sent at `sent_ms`, and this broker is not fenced."""
        standing = self._node.controller.standing
        if self._until_ms != _NEVER_MS and answered_ms >= self._stands_until_ms(answered_ms):
            self._as_of_ms = answered_ms
        followed_ms = standing.followed_at_ms(answered_ms)
        if followed_ms is None:
            self._led_epoch = _NO_EPOCH
            self._until_ms = sent_ms + self._node.settings[BROKER_SESSION_TIMEOUT_MS]
        else:
            self._led_epoch = standing.epoch
            self._until_ms = followed_ms + self._own_session_ms

    @property
    def _own_session_ms(self) -> int:
        return min(self._node.settings[BROKER_SESSION_TIMEOUT_MS], self._node.controller.standing.missed_after_ms)

    def _stands_until_ms(self, now_ms: int) -> int:
        standing = self._node.controller.standing
        if self._led_epoch == standing.epoch:
            followed_ms = standing.followed_at_ms(now_ms)
            if followed_ms is not None:
                return max(self._until_ms, followed_ms + self._own_session_ms)
        return self._until_ms

    @property
    def is_certain(self) -> bool:
        """Whether nobody else leads what this broker leads because it was not heard of."""
        standing = self._node.controller.standing
        if standing.decides_alone:
            return True
        now_ms = self._node.ports.clock.monotonic_ms()
        return now_ms < self._stands_until_ms(now_ms) and standing.metadata_as_of_ms(now_ms) >= self._as_of_ms
