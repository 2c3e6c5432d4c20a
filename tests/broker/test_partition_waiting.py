"""Those who wait for a partition's commits: each is called once, whatever happens while they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from millstream.broker.partition import Partition
from millstream.protocol.uuid import ZERO_UUID


def partition_committed_to(high_watermark: int) -> Partition:
    log: Any = SimpleNamespace(
        high_watermark=high_watermark, advance_high_watermark=lambda _: None, failure="no space", is_offline=False
    )
    wakeups: Any = SimpleNamespace(log_grew=lambda _: None, more_committed=lambda _: None)
    partition = Partition("t", 0, ZERO_UUID, log, wakeups, lambda _: None)
    partition.leader = SimpleNamespace(high_watermark=high_watermark)  # type: ignore[assignment]
    return partition


def test_an_append_that_fails_while_others_hear_of_a_commit() -> None:
    # A client whose answer goes out may have its next request handled in the same call, and that may find a full disk.
    partition = partition_committed_to(12)
    called: list[int] = []
    partition.when_committed(10, partition.went_offline)
    for offset in (11, 20):
        partition.when_committed(offset, lambda offset=offset: called.append(offset))  # type: ignore[misc]
    partition._committed()
    assert called == [11, 20]
