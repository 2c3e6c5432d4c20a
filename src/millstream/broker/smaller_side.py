"""Whether this broker is on the smaller side of a network that has come apart, and should send clients to the other.

A broker that is cut off from the rest goes on as it was until it hears otherwise. Its partitions are led elsewhere by
then, but clients that still reach it ask it who leads, and it names itself. librdkafka asks the broker that it spoke to
last: where all of a producer's leaders are cut off together, it would be told so until the network is whole again. So
who asks such a broker for the way is hung up on, and asks the next.

Not being heard by a controller is no reason by itself: while no controller lives at all, brokers serve their clients.
What tells the two apart is whether the others still fetch. A broker takes itself for cut off while it is not in touch
(touch.py) and most of those who should follow it are silent. That must be two at least: one may have died, together
with the controllers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.settings import BROKER_SESSION_TIMEOUT_MS, REPLICA_FETCH_WAIT_MAX_MS

if TYPE_CHECKING:
    from millstream.broker.node import Node

WHY = "this broker is cut off from most of the others, who know better"


def is_on_smaller_side(node: Node) -> bool:
    if node.membership.is_in_touch:
        return False
    # A follower asks for each of its partitions at least once a second besides (follower_feed.py).
    silent_after_ms = node.settings[BROKER_SESSION_TIMEOUT_MS] + node.settings[REPLICA_FETCH_WAIT_MAX_MS] + 1_000
    since_ms = node.ports.clock.monotonic_ms() - silent_after_ms
    brokers = node.image.brokers
    heard: set[int] = set()
    expected: set[int] = set()
    for partition in node.partitions:
        if partition.leader is not None:
            for follower in partition.leader.followers.values():
                known = brokers.get(follower.id)
                if known is not None and known.active:
                    expected.add(follower.id)
                if follower.heard_ms > since_ms:
                    heard.add(follower.id)
    return len(expected - heard) > max(len(heard), 1)
