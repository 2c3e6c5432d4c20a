"""Classic and new members in one group: groups become consumer groups and classic groups again, live."""

from __future__ import annotations

from struct import pack
from typing import Any

import pytest

from millstream.groups.classic.group import ClassicGroup
from millstream.groups.consumer.group import ConsumerGroup
from millstream.protocol.errors import ErrorCode, NotEnoughReplicas
from tests.groups.classic_scene import GROUP
from tests.groups.consumer_scene import ConsumerScene, assigned_in, assignment_of, pairs, stored_state

EVERYTHING = frozenset(("t", index) for index in range(3))


def classic_group(**settings: str | int) -> tuple[ConsumerScene, str]:
    """A stable classic group of one member that owns everything; the member's id."""
    scene = ConsumerScene({"t": 3}, group_consumer_assignment_interval_ms=0, **settings)
    joined = scene.join_new(protocols=scene.subscription("t"))
    scene.pass_ms(1)
    member_id = joined.answer.member_id
    scene.sync(member_id, 1, {member_id: assignment_of(EVERYTHING)}, protocol="cooperative")
    return scene, member_id


def rejoin(scene: ConsumerScene, member_id: str, owned: Any) -> tuple[int, frozenset[tuple[str, int]]]:
    """A round of JoinGroup and SyncGroup: the generation, and what the member owns now."""
    joined = scene.join(member_id, protocols=scene.subscription("t", owned=owned))
    assert joined.error is ErrorCode.NONE
    assert (joined.answer.leader, joined.answer.members) == ("", [])
    synced = scene.sync(member_id, joined.answer.generation_id, protocol="cooperative")
    assert synced.error is ErrorCode.NONE
    return joined.answer.generation_id, assigned_in(synced.answer.assignment)


def test_a_classic_group_is_upgraded_with_its_members_in_place() -> None:
    scene, old = classic_group()
    answer = scene.enter("new", "t")
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 2)
    assert isinstance(scene.machine.groups[GROUP], ConsumerGroup)
    assert scene.owned_by(old) == EVERYTHING
    member = scene.consumers.members[old]
    assert (member.epoch, member.is_classic, member.topics) == (1, True, frozenset({"t"}))
    assert stored_state(scene.replayed()) == stored_state(scene.machine)


def test_the_classic_member_is_told_to_rebalance_until_it_has_given_its_share() -> None:
    scene, old = classic_group()
    scene.enter("new", "t")
    assert scene.heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    generation, keeps = rejoin(scene, old, EVERYTHING)
    assert (generation, len(keeps)) == (1, 2)
    assert scene.heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    generation, still = rejoin(scene, old, keeps)
    assert (generation, still) == (2, keeps)
    assert scene.heartbeat(old, 2) is ErrorCode.NONE
    scene.settle("new", rounds=2)
    assert scene.owned_by("new") == EVERYTHING - keeps


def test_a_classic_member_that_waits_for_a_partition_is_told_when_it_is_free() -> None:
    scene = ConsumerScene({"t": 2}, group_consumer_assignment_interval_ms=0)
    epoch = scene.enter("new", "t").member_epoch
    joined = scene.join_new(protocols=scene.subscription("t"))
    old, generation = joined.answer.member_id, joined.answer.generation_id
    assert assigned_in(scene.sync(old, generation, protocol="cooperative").answer.assignment) == frozenset()
    assert scene.heartbeat(old, generation) is ErrorCode.NONE
    scene.beat("new", epoch)
    scene.beat("new", epoch, owned=pairs(scene.consumers.members["new"].assigned))
    assert scene.heartbeat(old, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(rejoin(scene, old, ())[1]) == 1
    assert scene.heartbeat(old, generation) is ErrorCode.NONE


def test_a_classic_member_that_does_not_come_when_told_is_removed() -> None:
    scene, old = classic_group()
    epoch = scene.enter("new", "t").member_epoch
    for _ in range(14):
        scene.pass_ms(5_001)
        scene.heartbeat(old, 1)
        epoch = scene.beat("new", epoch, owned=pairs(scene.consumers.members["new"].assigned)).member_epoch
    assert list(scene.consumers.members) == ["new"]


def test_a_classic_member_that_joins_and_never_syncs_is_removed() -> None:
    scene, old = classic_group()
    epoch = scene.enter("new", "t").member_epoch
    scene.join(old, protocols=scene.subscription("t", owned=EVERYTHING), session_ms=300_000)
    for _ in range(12):
        scene.pass_ms(5_001)
        epoch = scene.beat("new", epoch, owned=pairs(scene.consumers.members["new"].assigned)).member_epoch
    assert list(scene.consumers.members) == ["new"]


def test_classic_requests_are_answered_in_the_words_of_the_classic_protocol() -> None:
    scene, old = classic_group()
    scene.enter("new", "t")
    assert scene.heartbeat(old, 9) is ErrorCode.ILLEGAL_GENERATION
    assert scene.heartbeat("nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.heartbeat("new", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.sync(old, 9).error is ErrorCode.ILLEGAL_GENERATION
    assert scene.sync(old, 1, protocol="other").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert scene.sync(old, 1, protocol="cooperative").error is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.join(protocols=scene.subscription("t"), protocol_type="connect").error is (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    assert scene.join(protocols={"unheard of": b"\0\0"}).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert scene.join("x", protocols={"cooperative": b"\xff"}).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert scene.leave((old, None), ("nobody", None)) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(scene.consumers.members) == ["new"]


def test_members_that_wait_in_a_classic_rebalance_are_told_to_come_again() -> None:
    scene, old = classic_group()
    waiting = scene.join_new(protocols=scene.subscription("t"))
    assert waiting.answer is None
    scene.enter("new", "t")
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert set(scene.consumers.members) >= {old, "new"}


def test_the_last_new_member_leaves_a_classic_group_behind_that_rebalances() -> None:
    scene, old = classic_group()
    scene.enter("new", "t")
    _, keeps = rejoin(scene, old, EVERYTHING)
    rejoin(scene, old, keeps)
    scene.beat("new", -1)
    assert isinstance(scene.machine.groups[GROUP], ClassicGroup)
    replayed = scene.replayed().groups[GROUP]
    assert isinstance(replayed, ClassicGroup)
    assert (replayed.generation, list(replayed.members)) == (2, [old])
    scene.pass_ms(1)
    assert scene.heartbeat(old, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = scene.join(old, protocols=scene.subscription("t", owned=keeps))
    assert (joined.error, joined.answer.generation_id, joined.answer.leader) == (ErrorCode.NONE, 3, old)


def test_a_new_member_whose_session_ends_leaves_a_classic_group_behind_too() -> None:
    scene, old = classic_group()
    scene.enter("new", "t")
    _, keeps = rejoin(scene, old, EVERYTHING)
    generation, _ = rejoin(scene, old, keeps)
    for _ in range(9):
        scene.pass_ms(5_001)
        scene.heartbeat(old, generation)
    assert isinstance(scene.machine.groups[GROUP], ClassicGroup)


def test_a_downgrade_that_cannot_be_written_did_not_happen() -> None:
    scene, old = classic_group()
    scene.enter("new", "t")
    before = stored_state(scene.machine)
    scene.fail_writes = NotEnoughReplicas
    scene.beat("new", -1)
    scene.fail_writes = None
    assert stored_state(scene.machine) == before
    assert scene.heartbeat(old, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_changes_its_protocol_and_keeps_its_partitions() -> None:
    scene = ConsumerScene({"t": 3}, group_consumer_assignment_interval_ms=0)
    joined = scene.join(instance_id="one", protocols=scene.subscription("t"))
    scene.pass_ms(1)
    old = joined.answer.member_id
    scene.sync(old, 1, {old: assignment_of(EVERYTHING)}, instance_id="one", protocol="cooperative")
    answer = scene.enter("new", "t", instance_id="one")
    assert answer.error_code == ErrorCode.NONE
    assert scene.owned_by("new") == EVERYTHING
    assert list(scene.consumers.members) == ["new"]
    # And back: the group has only classic members again.
    scene.beat("new", -2, instance_id="one")
    back = scene.join(instance_id="one", protocols=scene.subscription("t"))
    assert back.error is ErrorCode.NONE
    assert isinstance(scene.machine.groups[GROUP], ClassicGroup)
    synced = scene.sync(back.answer.member_id, back.answer.generation_id, instance_id="one", protocol="cooperative")
    assert assigned_in(synced.answer.assignment) == EVERYTHING
    assert list(scene.replayed().groups[GROUP].members) == [back.answer.member_id]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("policy", "up", "down"), [("disabled", 0, 0), ("upgrade", 1, 0), ("DOWNGRADE", 0, 1)])
def test_the_policy_says_which_way_a_group_may_go(policy: str, up: int, down: int) -> None:
    scene, _ = classic_group(group_consumer_migration_policy=policy)
    answer = scene.enter("new", "t")
    assert (answer.error_code == ErrorCode.NONE) is bool(up)
    if not up:
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert "online upgrade is disabled" in scene.refusal
    other = ConsumerScene({"t": 3}, group_consumer_migration_policy=policy)
    other.enter("new", "t")
    joined = other.join("old", protocols=other.subscription("t"))
    assert (joined.error is ErrorCode.NONE) is (policy != "disabled")
    if joined.error is ErrorCode.NONE:
        other.beat("new", -1)
        assert isinstance(other.machine.groups[GROUP], ClassicGroup) is bool(down)


def test_groups_that_are_not_of_consumers_are_not_upgraded() -> None:
    scene = ConsumerScene()
    joined = scene.join_new(protocols={"x": b"anything"}, protocol_type="connect")
    scene.pass_ms(1)
    scene.sync(joined.answer.member_id, 1, {}, protocol_type="connect", protocol="x")
    assert scene.enter("new", "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "does not use the consumer embedded protocol" in scene.refusal
    assert isinstance(scene.machine.groups[GROUP], ClassicGroup)


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\xff\xff", b"\0\1\0\0\0\5", b"\0\0" + pack(">i", 2**31 - 1)])
def test_what_members_wrote_and_nobody_can_read_keeps_a_group_classic(metadata: bytes) -> None:
    scene = ConsumerScene()
    joined = scene.join_new(protocols={"range": metadata})
    scene.pass_ms(1)
    scene.sync(joined.answer.member_id, 1, {})
    assert scene.enter("new", "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(scene.machine.groups[GROUP], ClassicGroup)


def test_an_empty_group_of_either_kind_gives_way_to_the_other() -> None:
    scene, old = classic_group()
    scene.leave((old, None))
    assert scene.enter("new", "t").error_code == ErrorCode.NONE
    assert isinstance(scene.machine.groups[GROUP], ConsumerGroup)
    scene.beat("new", -1)
    joined = scene.join_new(protocols=scene.subscription("t"))
    scene.pass_ms(1)
    assert joined.error is ErrorCode.NONE
    assert isinstance(scene.machine.groups[GROUP], ClassicGroup)
    assert isinstance(scene.replayed().groups[GROUP], ClassicGroup)
