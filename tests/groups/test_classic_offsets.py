"""What a classic group says to the code that keeps offsets: who may commit, and what may expire."""

from __future__ import annotations

import pytest

from millstream.groups.classic.group import ClassicGroup
from millstream.groups.classic.subscription import subscribed_topics
from millstream.groups.group import OffsetExpiry
from millstream.protocol.codec import encode
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from tests.groups.classic_scene import Scene


def subscription(*topics: str, version: int = 3) -> bytes:
    return version.to_bytes(2) + encode(ConsumerProtocolSubscription(topics=list(topics)), version)


def commit(scene: Scene, member_id: str, generation: int, *, instance_id=None, transactional=False) -> ErrorCode:
    try:
        scene.group.check_commit(member_id, instance_id, generation, transactional=transactional, version=8)
    except BrokerError as refusal:
        return refusal.code
    return ErrorCode.NONE


# Who may commit


def test_members_of_the_generation_may_commit():
    scene = Scene()
    (member,) = scene.stable()
    assert commit(scene, member, 1) is ErrorCode.NONE
    assert commit(scene, member, 0) is ErrorCode.ILLEGAL_GENERATION
    assert commit(scene, member, 2) is ErrorCode.ILLEGAL_GENERATION
    assert commit(scene, "nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(scene, member, 1, instance_id="nobody") is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_may_commit_before_they_join_again():
    scene = Scene()
    leader, follower = scene.stable(2)
    scene.join(leader)
    assert commit(scene, follower, 2) is ErrorCode.NONE
    scene.join(follower)
    assert commit(scene, follower, 3) is ErrorCode.REBALANCE_IN_PROGRESS, "it does not know yet what it owns"
    assert commit(scene, follower, 3, transactional=True) is ErrorCode.NONE


def test_strangers_may_commit_while_there_are_no_members():
    scene = Scene()
    (member,) = scene.stable()
    assert commit(scene, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(scene, "", -1, transactional=True) is ErrorCode.NONE
    scene.leave((member, None))
    assert commit(scene, "", -1) is ErrorCode.NONE
    assert commit(scene, member, 2) is ErrorCode.UNKNOWN_MEMBER_ID


# What expires


def test_offsets_of_an_empty_group_age_from_when_it_became_empty():
    scene = Scene()
    (member,) = scene.stable()
    scene.pass_ms(500)
    scene.leave((member, None))
    assert scene.group.offset_expiry() == OffsetExpiry(since_ms=scene.now_ms)
    scene.crash()
    assert scene.group.offset_expiry() == OffsetExpiry(since_ms=scene.now_ms)


def test_offsets_of_a_stable_group_age_from_their_commit_unless_it_reads_the_topic():
    scene = Scene()
    scene.stable(2, protocols={"range": subscription("read")})
    for _ in ("live", "replayed"):
        assert scene.group.offset_expiry() == OffsetExpiry()
        assert scene.group.is_subscribed_to("read")
        assert not scene.group.is_subscribed_to("unread")
        scene.crash()


def test_nothing_expires_during_a_rebalance():
    """KAFKA-4682."""
    scene = Scene()
    leader, _ = scene.stable(2, protocols={"range": subscription("read")})
    scene.join(leader, protocols={"range": subscription("read")})
    assert scene.group.offset_expiry() is None


def test_nothing_expires_if_the_members_cannot_be_understood():
    scene = Scene()
    scene.stable(protocols={"range": b"\x00"})
    assert scene.group.offset_expiry() is None
    assert scene.group.is_subscribed_to("anything")


def test_offsets_of_other_protocol_types_do_not_expire_while_there_are_members():
    scene = Scene()
    scene.join(version=3, protocol_type="connect", protocols={"range": b"opaque"})
    scene.pass_ms(0)
    assert scene.group.offset_expiry() is None
    assert not scene.group.is_subscribed_to("anything")


def test_a_group_that_nobody_ever_joined_lets_each_offset_age_from_its_commit():
    assert ClassicGroup("g", 0).offset_expiry() == OffsetExpiry()


# Subscriptions


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_subscriptions_of_every_version_are_read(version):
    assert subscribed_topics([subscription("a", "b", version=version), subscription("c")]) == {"a", "b", "c"}


def test_subscriptions_of_versions_to_come_are_read_too():
    assert subscribed_topics([(99).to_bytes(2) + subscription("a")[2:] + b"more"]) == {"a"}


@pytest.mark.parametrize(
    "nonsense",
    [
        b"",
        b"\x00",
        b"\x00\x00",
        b"\xff\xff" + subscription("a")[2:],
        b"\x00\x00\x7f\xff\xff\xff",
        subscription("a")[:8],
    ],
)
def test_nonsense_means_not_known(nonsense):
    assert subscribed_topics([subscription("a"), nonsense]) is None


# Deleting


def test_a_group_with_members_is_not_deleted():
    scene = Scene()
    (member,) = scene.stable()
    with pytest.raises(BrokerError) as refusal:
        scene.group.check_delete()
    assert refusal.value.code is ErrorCode.NON_EMPTY_GROUP
    scene.leave((member, None))
    scene.group.check_delete()
    (tombstone,) = scene.group.tombstones()
    scene.machine.apply(tombstone.key, None, transaction=None, offset=99)
    assert scene.machine.groups == {}


@pytest.mark.parametrize(("protocol_type", "allowed"), [("consumer", True), ("connect", False)])
def test_offsets_of_a_group_with_members_are_deleted_only_if_it_can_tell_what_it_reads(protocol_type, allowed):
    scene = Scene()
    scene.join(version=3, protocol_type=protocol_type)
    scene.pass_ms(0)
    if allowed:
        scene.group.check_offset_delete()
    else:
        with pytest.raises(BrokerError):
            scene.group.check_offset_delete()
