"""Bugs that others had with replication (facts: reliability, by number), each as a test of the pure rules."""

from __future__ import annotations

import pytest

from millstream.protocol.errors import ErrorCode, NotEnoughReplicas
from millstream.replication.follower import AwaitMetadata, Truncate
from tests.replication.model import LAG_MAX_MS, Cluster


def test_1_two_fast_elections_with_a_lagging_mark_lose_nothing() -> None:
    """KIP-101: a follower that cuts to its own high watermark drops what is committed, and may lead the next moment."""
    cluster = Cluster(replicas=2)
    cluster.append("ab")
    cluster.fetch(2)
    cluster.fetch(2, decide=True)  # the leader knows that broker 2 has both; broker 2 has not heard of the mark
    cluster[2].log.high_watermark = 1
    assert cluster.committed == [(0, "a"), (0, "b")]
    cluster.reboot(2)  # in Kafka before KIP-101 it would come back with "a" alone
    cluster.hear(2)
    cluster.elect(1)
    cluster.fetch(2)
    cluster.elect(2)
    cluster.settle()
    assert cluster[1].log.values() == cluster[2].log.values() == "ab"
    cluster.check()


def test_2_epochs_without_writes_back_to_back_converge() -> None:
    """KAFKA-6361, KIP-279: the two logs differ in an epoch that one of them never had."""
    cluster = Cluster(replicas=2)
    cluster.append("a")
    cluster.settle()
    cluster.elect(1, isr=(1,), heard_by=[1])
    cluster.append("x", at=1)  # epoch 1, on broker 1 alone
    cluster.metadata = cluster.metadata.__class__(1, 1, cluster.metadata.partition_epoch + 1, (1, 2), {1: 0, 2: 0})
    cluster.committed = cluster.committed[:1]  # what was alone there is lost by an unclean election
    cluster[1].log.high_watermark = 1
    cluster.elect(2, isr=(2,), heard_by=[2])
    cluster.append("y")  # epoch 2, on broker 2 alone
    cluster.committed = [*cluster.committed[:1], (2, "y")]
    cluster.elect(2)
    cluster.elect(2)
    cluster.settle()
    assert cluster[1].log.values() == cluster[2].log.values() == "ay"
    assert cluster[1].log.epochs.entries == ((0, 0), (2, 1))


def test_3_a_fetch_from_a_leader_of_another_epoch_is_refused() -> None:
    """KIP-320: the leader was stopped, another was elected, the first goes on and does not know."""
    cluster = Cluster()
    cluster.append("a")
    cluster.settle()
    cluster.elect(2, heard_by=[2, 3])
    asked = cluster[3].follower.position(cluster[3].log)  # type: ignore[union-attr]
    cluster[3].follower.leader_id = 1  # type: ignore[union-attr]  # the fetch reaches the old leader
    assert cluster.answer(3, asked).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    # And who still fetches in the old epoch is fenced by the new leader, and does nothing by it.
    cluster.elect(3, heard_by=[3])
    cluster[2].follower = None
    cluster[1].leader, cluster[1].follower = None, cluster[3].follower
    old = asked._replace(leader_epoch=0)
    cluster.elect(2, heard_by=[2, 1])
    told = cluster.answer(1, old)
    assert told.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert cluster.take(1, cluster[1].follower.position(cluster[1].log), told) == [AwaitMetadata()]  # type: ignore[union-attr]


def test_4_below_the_minimum_in_sync_nothing_is_committed() -> None:
    """KIP-966, the last replica standing: what it alone has must not count, or its crash loses it."""
    cluster = Cluster(replicas=3, min_isr=2)
    cluster.append("a")
    cluster.settle()
    cluster.elect(1, isr=(1,))
    leader = cluster[1].leader
    assert leader is not None
    with pytest.raises(NotEnoughReplicas):
        leader.check_enough_in_sync()
    cluster.append("b")  # acks=1 goes on
    assert cluster.committed == [(0, "a")]
    cluster.reboot(1, keep=1)
    cluster.elect(2, isr=(2, 3))
    cluster.append("c")
    cluster.settle()
    cluster.check()
    assert cluster[1].log.values() == "ac"


def test_5_the_mark_is_not_raised_before_the_log_is_cut() -> None:
    """KAFKA-14704: an ex-leader with an extra tail shows nothing above the true mark."""
    cluster = Cluster()
    cluster.append("ab")
    cluster.settle()
    cluster.append("xy", at=1)
    cluster.elect(2, isr=(2, 3), heard_by=[2, 3])
    cluster.append("cd")
    for _ in range(2):
        cluster.fetch(3)
    assert cluster[2].log.high_watermark == 4
    cluster.hear(1)
    assert cluster.fetch(1) == [Truncate(2)]
    assert cluster[1].log.high_watermark == 2
    cluster.check()


def test_6_a_fetch_from_before_a_reboot_brings_nobody_into_the_isr() -> None:
    """KAFKA-15221: the broker epoch is checked, by the leader and by the controller."""
    cluster = Cluster()
    cluster.append("abc")
    cluster.settle()
    late = cluster[3].follower.position(cluster[3].log)  # type: ignore[union-attr]  # sent, and delayed
    cluster.reboot(3, keep=1)
    cluster.hear(1)
    assert list(cluster.metadata.isr) == [1, 2]
    cluster.hear(3)
    told = cluster.answer(3, late, broker_epoch=0)
    assert told.error_code == ErrorCode.NONE
    assert list(cluster.metadata.isr) == [1, 2], "the old process does not count"
    cluster.fetch(3)
    assert cluster.answer(3, late, broker_epoch=0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.settle()
    assert list(cluster.metadata.isr) == [1, 2, 3]
    cluster.check()


def test_6_the_controller_refuses_a_member_that_was_restarted_meanwhile() -> None:
    cluster = Cluster()
    cluster.append("abc")
    cluster.settle()
    cluster.elect(1, isr=(1, 2))
    for _ in range(2):
        cluster.fetch(3, decide=False)
    assert cluster.proposed_by(1) == (1, 2, 3)
    cluster.reboot(3, keep=1)
    assert not cluster.alter(1)
    assert cluster.proposed_by(1) is None
    assert list(cluster.metadata.isr) == [1, 2]


def test_7_elections_without_writes_do_not_leave_a_follower_stuck() -> None:
    """KAFKA-10706: an epoch that began at the end of the log is forgotten, although nothing is cut."""
    cluster = Cluster(replicas=2)
    cluster.append("a")
    cluster.settle()
    cluster.elect(2, heard_by=[2])  # epoch 1: broker 2 writes nothing
    cluster.elect(1, heard_by=[1, 2])  # epoch 2: broker 1 has never heard of epoch 1
    cluster.append("b")
    assert cluster.fetch(2) == [Truncate(1)]
    assert cluster[2].log.values() == "a"
    assert cluster[2].log.latest_epoch == 0
    cluster.settle()
    assert cluster[2].log.values() == "ab"
    cluster.check()


def test_8_a_leader_knows_where_its_epoch_begins_before_it_writes() -> None:
    """KAFKA-7415: whoever asks for the end of an older epoch gets the right answer at once."""
    cluster = Cluster()
    cluster.append("ab")
    cluster.settle()
    cluster.elect(2)
    assert cluster[2].log.epochs.latest == (1, 2)
    assert cluster[2].log.end_offset_for_epoch(0) == (0, 2)


def test_10_a_shrunk_isr_lets_the_mark_go_on() -> None:
    """KAFKA-13091: what waited for the lost follower is committed in the call that hears of the smaller ISR."""
    cluster = Cluster(replicas=2)
    cluster.append("a")
    assert cluster.committed == []
    cluster.now_ms += LAG_MAX_MS + 1
    cluster.shrink(1)
    assert list(cluster.metadata.isr) == [1]
    assert cluster.committed == [(0, "a")]


def test_10_until_the_controller_agrees_the_lost_follower_counts() -> None:
    cluster = Cluster(replicas=2)
    cluster.append("a")
    cluster.now_ms += LAG_MAX_MS + 1
    cluster.shrink(1, decide=False)
    assert cluster.committed == [], "it may still be elected"
    assert cluster.alter(1)
    cluster.hear(1)
    assert cluster.committed == [(0, "a")]


def test_11_the_isr_stays_within_the_replicas_when_they_are_moved() -> None:
    """KAFKA-9672: a follower that was moved away is neither counted nor let in again."""
    cluster = Cluster()
    cluster.append("a")
    cluster.settle()
    leader = cluster[1].leader
    assert leader is not None
    leader.committed(isr=(1, 2), partition_epoch=10, replicas=(1, 2))
    assert sorted(leader.followers) == [2]
    cluster.append("b")
    asked = cluster[3].follower.position(cluster[3].log)  # type: ignore[union-attr]
    assert cluster.answer(3, asked).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    cluster.fetch(2)
    cluster.fetch(2)
    assert leader.high_watermark == 2
