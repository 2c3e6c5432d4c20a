"""The interleavings of test_consumer_interleavings.py, with members that are gathered (gathering.py)."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from millstream.protocol.errors import NotEnoughReplicas
from tests.groups.test_consumer_interleavings import SUBSCRIPTIONS, Fleet, Reader


class GatheredFleet(Fleet):
    """The same, where members that come together are assigned together, or are about to when something happens."""

    linger_ms = -1

    @rule(
        subscriptions=st.lists(st.sampled_from(SUBSCRIPTIONS), min_size=2, max_size=3),
        meanwhile=st.sampled_from(["nothing", "crash", "full disk", "heartbeats", "leaving"]),
    )
    def come_together(self, subscriptions: list[dict[str, Any]], meanwhile: str) -> None:
        coming = []
        for subscription in subscriptions[: 5 - len(self.readers)]:
            reader = Reader(f"m{len(self.readers)}", None, subscription)
            self.readers.append(reader)
            pending = self.scene.begin_to_beat(reader.id, 0, owned=(), rebalance_timeout_ms=60_000, **subscription)
            coming.append((reader, pending))
        if meanwhile == "crash":
            self.broker_crashes()
        elif meanwhile == "full disk":
            self.scene.fail_writes = NotEnoughReplicas
        elif meanwhile == "heartbeats":
            for reader in self.readers[: len(self.readers) - len(coming)]:
                self.beat(reader, lost=False)
        elif meanwhile == "leaving" and coming:
            self.scene.begin_to_beat(coming[0][0].id, -1)
        self.scene.pass_ms(100)
        self.scene.fail_writes = None
        for reader, pending in coming:
            if pending.answer is not None:
                reader.hear(pending.answer)
            else:
                assert meanwhile == "crash", f"{reader} was never answered"


TestGatheredFleet = GatheredFleet.TestCase
TestGatheredFleet.settings = settings(stateful_step_count=40)
