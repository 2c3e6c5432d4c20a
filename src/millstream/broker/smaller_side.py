"""Whether this broker may be on the smaller side of a network that has come apart, and should send clients away.

A broker that is cut off from the rest goes on as it was until it hears otherwise. Its partitions are led elsewhere by
then, but clients that still reach it ask it who leads, and it names itself. librdkafka asks the broker that it spoke to
last: where all of a producer's leaders are cut off together, it would be told so until the network is whole again. So
who asks such a broker for the way is hung up on, and asks the next.

Not being heard by a controller is no reason by itself: while no controller lives at all, brokers serve their clients.
What makes the difference is a broker that is in sync and silent. While both last, nothing that it should hold is
acknowledged, whatever the reason: nobody can let it go.

The reason may also be that the others have died, and this is the last one that lives. So a client is sent away for a
while only, `SENT_AWAY_MS` of every `ROUND_MS`, and answered otherwise: who still comes has nobody else to ask. (Who has
found another broker meanwhile knows of newer leader epochs, and goes by those.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.settings import BROKER_SESSION_TIMEOUT_MS, REPLICA_FETCH_WAIT_MAX_MS

if TYPE_CHECKING:
    from millstream.broker.dispatch import Context
    from millstream.broker.node import Node

SENT_AWAY_MS = 10_000
ROUND_MS = 60_000
_CLIENTS_MAX = 10_000


class SmallerSide:
    """What this broker knows of its side, and who was sent away."""

    def __init__(self, node: Node) -> None:
        self._node = node
        # When a client, by its host and id, was first told to ask somebody else in this round.
        self._told_ms: dict[tuple[str, str | None], int] = {}

    def sends_away(self, ctx: Context) -> bool:
        """Whether a client that asks for leaders or coordinators is hung up on; it is, then."""
        if not self.is_ours:
            return False
        now_ms = self._node.ports.clock.monotonic_ms()
        if len(self._told_ms) >= _CLIENTS_MAX:
            self._told_ms.clear()
        client = (ctx.connection.peer_host, ctx.client_id)
        told_ms = self._told_ms.setdefault(client, now_ms)
        if now_ms - told_ms >= ROUND_MS:
            told_ms = self._told_ms[client] = now_ms
        if now_ms - told_ms >= SENT_AWAY_MS:
            return False
        ctx.connection.cut_off("this broker seems to be cut off from others, who know better")
        return True

    @property
    def is_ours(self) -> bool:
        """Whether this may be the smaller side."""
        node = self._node
        if node.membership.is_in_touch:
            return False
        # A follower asks for each of its partitions at least once a second besides (follower_feed.py).
        silent_after_ms = node.settings[BROKER_SESSION_TIMEOUT_MS] + node.settings[REPLICA_FETCH_WAIT_MAX_MS] + 1_000
        since_ms = node.ports.clock.monotonic_ms() - silent_after_ms
        heard: set[int] = set()
        in_sync: set[int] = {node.node_id}
        for partition in node.partitions:
            leader = partition.leader
            if leader is not None:
                in_sync.update(leader.isr)
                heard.update(each.id for each in leader.followers.values() if each.heard_ms > since_ms)
        return not in_sync <= {node.node_id, *heard}
