"""Who leads when brokers go and come, with and without eligible leader replicas (KIP-966)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.metadata.clusters import cluster, fence, topic, with_records, with_topics

from millstream.metadata.broker_lifecycle import decide_fence_broker, decide_register_broker, decide_unfence_broker
from millstream.metadata.decide_unregister_broker import decide_unregister_broker
from millstream.metadata.delta import apply
from millstream.metadata.image import NO_LEADER, RECOVERING
from millstream.metadata.leadership import (
    changes_after_unclean_shutdown,
    changes_for_leaderless,
    changes_for_preferred_leaders,
)
from millstream.metadata.record_types import FeatureLevelRecord
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord
from millstream.protocol.messages.unregister_broker import UnregisterBrokerRequest

ELR = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)


def image_of(*, elr=False, min_isr="1", unclean="false"):
    image = cluster([1, 2, 3])
    if elr:
        image = with_records(image, ELR)
    configs = {"min.insync.replicas": min_isr, "unclean.leader.election.enable": unclean}
    return with_topics(image, topic("t", assigned={0: [1, 2, 3]}, configs=configs))


def partition(image):
    return image.topics.by_name["t"].partitions[0]


def gone(image, broker_id):
    records = decide_fence_broker(image, broker_id, image.brokers[broker_id].epoch).records
    return with_records(image, *records)


def back(image, broker_id):
    return with_records(image, *decide_unfence_broker(image, broker_id, image.brokers[broker_id].epoch).records)


def state(image):
    now = partition(image)
    return now.leader, now.isr, now.elr, now.last_known_elr


def test_without_eligible_leaders_the_last_in_sync_is_waited_for():
    image = gone(gone(gone(image_of(), 1), 2), 3)
    assert state(image) == (NO_LEADER, (3,), (), ())
    assert state(back(image, 1)) == (NO_LEADER, (3,), (), ()), "1 lacks what 2 and 3 acknowledged"
    assert state(back(image, 3)) == (3, (3,), (), ())


def test_below_min_isr_those_who_left_last_stay_eligible():
    image = gone(image_of(elr=True, min_isr="2"), 1)
    assert state(image) == (2, (2, 3), (), ())
    image = gone(image, 2)
    assert state(image) == (3, (3,), (2,), ())
    image = gone(image, 3)
    assert state(image) == (NO_LEADER, (), (2, 3), (3,))
    assert state(back(image, 1)) == (NO_LEADER, (), (2, 3), (3,))
    assert state(back(image, 2)) == (2, (2,), (3,), ()), "2 has everything that was acknowledged to acks=all"


def test_after_an_unclean_shutdown_a_broker_is_no_longer_eligible():
    image = gone(gone(gone(image_of(elr=True, min_isr="2"), 1), 2), 3)
    image = with_records(image, *changes_after_unclean_shutdown(image, 2))
    assert state(image) == (NO_LEADER, (), (3,), (3,))
    image = with_records(image, *changes_after_unclean_shutdown(image, 3))
    assert state(image) == (NO_LEADER, (), (), (3,))
    assert partition(back(image, 1)).leader == NO_LEADER, "3 was the last to lead, and is waited for"


def test_the_last_leader_known_recovers_when_nobody_is_eligible_any_more():
    image = gone(image_of(elr=True), 2)
    image = gone(gone(image, 3), 1)
    assert state(image) == (NO_LEADER, (), (1,), (1,))
    image = with_records(image, *changes_after_unclean_shutdown(image, 1))
    image = back(image, 1)
    assert state(image) == (1, (1,), (), ())
    assert partition(image).leader_recovery_state == RECOVERING


def test_an_eligible_replica_is_not_preferred_to_one_in_sync():
    image = back(gone(gone(image_of(elr=True, min_isr="2"), 3), 1), 1)
    assert state(image) == (2, (2,), (1,), ())
    assert list(changes_for_preferred_leaders(image, at_most=10)) == [], "1 comes first, but only 2 is in sync"


def test_who_was_waited_for_before_eligible_leaders_were_kept_still_is():
    image = with_records(gone(gone(gone(image_of(), 1), 2), 3), ELR)
    assert state(image) == (NO_LEADER, (3,), (), ())
    image = with_records(image, *changes_after_unclean_shutdown(image, 3))
    assert state(image) == (NO_LEADER, (), (), (3,)), "it may have lost something"
    assert partition(back(image, 1)).leader == NO_LEADER
    image = back(image, 3)
    assert (partition(image).leader, partition(image).leader_recovery_state) == (3, RECOVERING)


def test_a_broker_that_was_unregistered_comes_back_with_another_disk():
    image = gone(gone(gone(image_of(elr=True, min_isr="2"), 3), 2), 1)
    assert state(image) == (NO_LEADER, (), (1, 2), (1,))
    unregistered = UnregisterBrokerRequest(broker_id=2)
    image = with_records(image, *decide_unregister_broker(image, unregistered).records)
    another = cluster([2]).brokers[2]
    image = with_records(image, *decide_register_broker(image, another, clean_shutdown_epoch=-1).records)
    image = back(image, 2)
    assert partition(image).leader == NO_LEADER, "its disk may be empty"
    assert partition(back(image, 1)).leader == 1


def test_who_was_eligible_is_not_when_the_feature_is_off():
    image = gone(image_of(elr=True, min_isr="2"), 3)
    image = gone(image, 2)
    assert state(image) == (1, (1,), (2,), ())
    image = back(with_records(image, FeatureLevelRecord(name=ELR.name, feature_level=0)), 2)
    assert state(gone(image, 1))[:2] == (NO_LEADER, (1,)), "1 may have acknowledged alone since"


def test_without_the_feature_an_unclean_shutdown_changes_nothing():
    image = gone(image_of(), 1)
    assert list(changes_after_unclean_shutdown(image, 2)) == []


def test_where_it_is_allowed_any_replica_leads_at_once():
    image = gone(gone(image_of(unclean="true"), 2), 3)
    image = with_records(image, PartitionChangeRecord(partition_id=0, topic_id=partition_topic(image), isr=[1]))
    image = back(image, 3)
    image = gone(image, 1)
    assert (partition(image).leader, partition(image).isr) == (3, (3,))
    assert partition(image).leader_recovery_state == RECOVERING


def partition_topic(image):
    return image.topics.by_name["t"].id


def test_a_setting_that_allows_it_later_elects_those_who_waited():
    waiting = back(gone(gone(gone(image_of(), 1), 2), 3), 1)
    assert list(changes_for_leaderless(waiting)) == []
    allowed = with_topics(cluster([1, 2, 3]), topic("u", assigned={0: [1, 2]}, configs={}))
    assert list(changes_for_leaderless(allowed)) == []
    unclean = image_of(unclean="true")
    unclean = with_records(
        fence(unclean, 2),
        PartitionChangeRecord(partition_id=0, topic_id=partition_topic(unclean), isr=[2], leader=NO_LEADER),
    )
    (record,) = changes_for_leaderless(unclean)
    assert (record.leader, record.isr, record.leader_recovery_state) == (1, [1], RECOVERING)


def test_leadership_goes_back_a_bounded_number_at_a_time():
    image = with_topics(cluster([1, 2]), topic("t", assigned={key: [1, 2] for key in range(5)}))
    image = back(gone(image, 1), 1)
    moved = [
        PartitionChangeRecord(partition_id=index, topic_id=partition_topic(image), isr=[2, 1]) for index in range(5)
    ]
    image = with_records(image, *moved)
    assert [record.leader for record in changes_for_preferred_leaders(image, 3)] == [1, 1, 1]
    image = with_records(image, *changes_for_preferred_leaders(image, 100))
    assert list(changes_for_preferred_leaders(image, 100)) == []


@given(
    steps=st.lists(st.tuples(st.sampled_from(["go", "come", "crash"]), st.integers(1, 3)), max_size=12),
    elr=st.booleans(),
    min_isr=st.sampled_from(["1", "2", "3"]),
)
def test_whoever_comes_and_goes_the_leader_was_known_to_hold_everything(steps, elr, min_isr):
    image = image_of(elr=elr, min_isr=min_isr)
    for step, broker_id in steps:
        before = partition(image)
        fenced = image.brokers[broker_id].fenced
        if step == "come" and fenced:
            image = back(image, broker_id)
        elif step != "come" and not fenced:
            image = gone(image, broker_id)
            if step == "crash":
                image = with_records(image, *changes_after_unclean_shutdown(image, broker_id))
        now = partition(image)
        assert set(now.isr) <= set(now.replicas)
        assert not set(now.isr) & set(now.elr)
        assert now.leader == NO_LEADER or now.leader in now.isr
        assert now.leader == NO_LEADER or image.brokers[now.leader].active
        if now.leader not in (NO_LEADER, before.leader) and now.leader_recovery_state != RECOVERING:
            assert now.leader in (*before.isr, *before.elr)


def test_the_changes_of_a_broker_are_one_batch_that_can_be_replayed():
    image = image_of(elr=True, min_isr="2")
    records = decide_fence_broker(image, 1, image.brokers[1].epoch).records
    replayed, _ = apply(image, records)
    assert state(replayed) == state(gone(image, 1))
