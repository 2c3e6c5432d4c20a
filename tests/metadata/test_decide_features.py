"""UpdateFeatures: all or nothing, supported by everyone, and never a downgrade that loses records."""

from __future__ import annotations

import pytest
from tests.metadata.clusters import after, cluster, topic, with_records, with_topics

from millstream.metadata.decide_features import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    KRaftVersion,
    decide_update_features,
)
from millstream.metadata.features import SUPPORTED_FEATURES
from millstream.protocol.codec import decode, encode
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.metadata.feature_level import FeatureLevelRecord
from millstream.protocol.messages.metadata.no_op import NoOpRecord
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord
from millstream.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

ELR = "eligible.leader.replicas.version"
DYNAMIC = KRaftVersion(1)


def update(*updates, level=29, validate_only=False, kraft=DYNAMIC, image=None):
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=feature, max_version_level=wanted, upgrade_type=how)
            for feature, wanted, how in updates
        ],
        validate_only=validate_only,
    )
    image = cluster(level=level) if image is None else image
    decision = decide_update_features(
        image, request, supported=SUPPORTED_FEATURES, node_id=1, kraft=kraft, min_insync_replicas=2
    )
    return image, decision


def test_an_upgrade_is_finalized():
    image, decision = update(("metadata.version", 30, UPGRADE))
    assert after(image, decision).metadata_version == 30
    assert [result.feature for result in decision.response.results] == ["metadata.version"]


def test_the_level_it_has_already_needs_no_record():
    _, decision = update(("metadata.version", 29, UPGRADE), ("kraft.version", 1, UPGRADE))
    assert decision.response.error_code == ErrorCode.NONE
    assert decision.records == ()


def test_validate_only_finalizes_nothing():
    _, decision = update(("metadata.version", 30, UPGRADE), validate_only=True)
    assert decision.response.error_code == ErrorCode.NONE
    assert decision.records == ()


@pytest.mark.parametrize(
    "refused",
    [
        ("no.such.feature", 1, UPGRADE),
        ("metadata.version", 31, UPGRADE),
        ("metadata.version", 6, UNSAFE_DOWNGRADE),
        ("metadata.version", 28, UPGRADE),
        ("metadata.version", 22, SAFE_DOWNGRADE),
        ("metadata.version", 22, UNSAFE_DOWNGRADE),
        ("metadata.version", 30, SAFE_DOWNGRADE),
        ("metadata.version", 30, 0),
        (ELR, -1, SAFE_DOWNGRADE),
        (ELR, 2, UPGRADE),
        ("kraft.version", 0, SAFE_DOWNGRADE),
        ("kraft.version", 0, UNSAFE_DOWNGRADE),
        ("kraft.version", 0, UPGRADE),
        ("kraft.version", 2, UPGRADE),
    ],
)
def test_one_refusal_refuses_all(refused):
    _, decision = update((ELR, 1, UPGRADE), refused)
    assert decision.response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert decision.response.error_message
    assert decision.response.results == []
    assert decision.records == ()


@pytest.mark.parametrize(
    ("level", "allowed", "code"),
    [
        (24, True, ErrorCode.NONE),
        (24, False, ErrorCode.INVALID_UPDATE_VERSION),
        (22, True, ErrorCode.INVALID_UPDATE_VERSION),
        (29, True, ErrorCode.NONE),
        (30, True, ErrorCode.NONE),
    ],
)
def test_version_0_allows_a_safe_downgrade_with_a_flag(level, allowed, code):
    asked = FeatureUpdateKey(feature="metadata.version", max_version_level=level, allow_downgrade=allowed)
    sent = encode(UpdateFeaturesRequest(feature_updates=[asked]), 0)
    image = cluster(level=29)
    decision = decide_update_features(
        image, decode(UpdateFeaturesRequest, 0, sent), supported=SUPPORTED_FEATURES, node_id=1, kraft=DYNAMIC
    )
    assert decision.response.error_code == code
    assert after(image, decision).metadata_version == (level if code == ErrorCode.NONE else 29)


def test_a_downgrade_between_levels_with_the_same_records_is_safe():
    image, decision = update(("metadata.version", 24, SAFE_DOWNGRADE))
    assert after(image, decision).metadata_version == 24


def test_eligible_leaders_bring_a_common_minimum_along():
    image, decision = update((ELR, 1, UPGRADE))
    now = after(image, decision)
    assert now.features[ELR] == 1
    assert now.config(4, "") == {"min.insync.replicas": "2"}


def test_eligible_leaders_need_a_metadata_version_that_stores_them():
    _, decision = update((ELR, 1, UPGRADE), level=22)
    assert decision.response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    _, decision = update((ELR, 1, UPGRADE), ("metadata.version", 23, UPGRADE), level=22)
    assert decision.response.error_code == ErrorCode.NONE


@pytest.mark.parametrize(("before", "wanted", "how"), [(1, 0, SAFE_DOWNGRADE), (0, 1, UPGRADE)])
def test_who_was_eligible_is_forgotten_when_that_is_switched(before, wanted, how):
    image = _with_partition(before, isr=[1], eligible_leader_replicas=[2])
    image, decision = update((ELR, wanted, how), image=image)
    assert decision.response.error_code == ErrorCode.NONE
    now = after(image, decision)
    assert now.topics.by_name["t"].partitions[0].elr == ()
    assert now.features.get(ELR, 0) == wanted


def test_eligible_leaders_stay_while_a_partition_waits_for_one():
    image = _with_partition(1, isr=[], eligible_leader_replicas=[2], leader=-1)
    _, decision = update((ELR, 0, SAFE_DOWNGRADE), image=image)
    assert decision.response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "t-0 has nobody in sync" in decision.response.error_message


def _with_partition(level, **changes):
    image = with_topics(cluster([1, 2]), topic("t", assigned={0: [1, 2]}))
    topic_id = image.topics.by_name["t"].id
    return with_records(
        image,
        FeatureLevelRecord(name=ELR, feature_level=level),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, **changes),
    )


def test_the_quorum_writes_its_own_level_and_a_record_to_wait_for():
    _, decision = update(("kraft.version", 1, UPGRADE), ("metadata.version", 30, UPGRADE), kraft=KRaftVersion(0))
    assert decision.response.error_code == ErrorCode.NONE
    assert decision.records == (FeatureLevelRecord(name="metadata.version", feature_level=30), NoOpRecord())


def test_asking_whether_the_quorum_could_be_upgraded_writes_nothing():
    _, decision = update(("kraft.version", 1, UPGRADE), validate_only=True, kraft=KRaftVersion(0))
    assert decision.response.error_code == ErrorCode.NONE
    assert decision.records == ()


@pytest.mark.parametrize(
    "updates", [[("kraft.version", 1, UPGRADE)], [(ELR, 1, UPGRADE), ("kraft.version", 1, UPGRADE)]]
)
def test_what_keeps_the_quorum_from_an_upgrade_keeps_everything_from_it(updates):
    _, decision = update(*updates, kraft=KRaftVersion(0, "nothing was heard from 3."))
    assert decision.response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "nothing was heard from 3." in decision.response.error_message
    assert decision.records == ()
