"""Whether this broker is on the smaller side of a network that has come apart, and should send clients to the other.

A broker that is cut off from the rest goes on as it was until it hears otherwise. Its partitions are led elsewhere by
then, but clients that still reach it ask it who leads, and it names itself. librdkafka asks the broker that it spoke to
last: where all of a producer's leaders are cut off together, it would be told so until the network is whole again. So
who asks such a broker for the way is hung up on, and asks the next.

Not being heard by a controller is no reason by itself: while no controller lives at all, brokers serve their clients.
What tells the two apart is whether the others still fetch. A broker takes itself for cut off while it is not in touch
(touch.py) and most of those who should follow it in sync are silent. That must be two at least: one may have died,
together with the controllers.

All of them may have died, and this one be the last that lives. So a client is sent away for `SENT_AWAY_MS` only: who
still comes then has nobody else to ask. (Who has found another broker meanwhile knows of newer leader epochs, and goes
by those.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.settings import BROKER_SESSION_TIMEOUT_MS, REPLICA_FETCH_WAIT_MAX_MS

if TYPE_CHECKING:
    from millstream.broker.dispatch import Context
    from millstream.broker.node import Node

# As long as clients wait for the answer to a request by default, after which they ask again who leads.
SENT_AWAY_MS = 30_000
_CLIENTS_MAX = 10_000


class SmallerSide:
    """What this broker knows of its side, and who was sent away."""

    def __init__(self, node: Node) -> None:
        self._node = node
        # When a client, by its host and id, was first told to ask somebody else.
        self._told_ms: dict[tuple[str, str | None], int] = {}

    def sends_away(self, ctx: Context) -> bool:
        """Whether a client that asks for leaders or coordinators is hung up on; it is, then."""
        if not self.is_ours:
            self._told_ms.clear()
            return False
        now_ms = self._node.ports.clock.monotonic_ms()
        if len(self._told_ms) >= _CLIENTS_MAX:
            self._told_ms.clear()
        told_ms = self._told_ms.setdefault((ctx.connection.peer_host, ctx.client_id), now_ms)
        if now_ms - told_ms >= SENT_AWAY_MS:
            return False
        ctx.connection.cut_off("this broker is cut off from most of the others, who know better")
        return True

    @property
    def is_ours(self) -> bool:
        """Whether this is the smaller side, as far as can be told."""
        node = self._node
        if node.membership.is_in_touch:
            return False
        # A follower asks for each of its partitions at least once a second besides (follower_feed.py).
        silent_after_ms = node.settings[BROKER_SESSION_TIMEOUT_MS] + node.settings[REPLICA_FETCH_WAIT_MAX_MS] + 1_000
        since_ms = node.ports.clock.monotonic_ms() - silent_after_ms
        heard: set[int] = set()
        expected: set[int] = set()
        for partition in node.partitions:
            leader = partition.leader
            if leader is not None:
                expected.update(follower for follower in leader.isr if follower != node.node_id)
                heard.update(each.id for each in leader.followers.values() if each.heard_ms > since_ms)
        return len(expected - heard) > max(len(heard), 1)
