"""The textbook case: a leader dies with events that its followers lack, and returns to a cluster that has gone on.

Leader of epoch 1 dies; an in-sync follower leads epoch 2; the old leader returns, is told the diverging epoch, cuts its
log at that offset and catches up.
"""

from __future__ import annotations

from millstream.replication.follower import AdvanceHighWatermark, Append, Truncate
from tests.replication.model import Cluster


def test_the_old_leader_is_told_the_diverging_epoch_truncates_and_catches_up() -> None:
    cluster = Cluster()
    cluster.elect(1)
    cluster.append("abc")
    cluster.settle()
    assert cluster.committed == [(1, "a"), (1, "b"), (1, "c")]

    # Events that nobody else has; then the leader dies, and its followers elect.
    cluster.append("xyz")
    assert cluster[1].log.end_offset == 6
    assert cluster[1].log.high_watermark == 3
    cluster.elect(2, isr=(2, 3), heard_by=[2, 3])
    cluster.append("de")
    cluster.fetch(3)
    cluster.fetch(3)
    assert cluster[2].log.high_watermark == 5

    # It returns: first it is told where the histories part, and cuts there; nothing else moves.
    cluster.reboot(1)
    for broker_id in (1, 2, 3):
        cluster.hear(broker_id)
    asked = cluster[1].follower.position(cluster[1].log)  # type: ignore[union-attr]
    told = cluster.answer(1, asked)
    assert (asked.offset, asked.last_fetched_epoch) == (6, 1)
    assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (1, 3)
    assert cluster.take(1, asked, told) == [Truncate(3)]
    assert cluster[1].log.values() == "abc"
    assert cluster[1].log.high_watermark == 3

    # Then it catches up, and comes back into the ISR.
    assert cluster.fetch(1) == [Append([(2, "d"), (2, "e")]), AdvanceHighWatermark(5)]  # type: ignore[arg-type]
    cluster.fetch(1)
    assert cluster[1].log.records == cluster[2].log.records == cluster[3].log.records
    assert cluster.metadata.isr == (2, 3, 1)
    cluster.check()
