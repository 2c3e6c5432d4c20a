"""SyncGroup: who owns what, and only after it is stored."""

from __future__ import annotations

import pytest

from millstream.protocol.errors import ErrorCode, NotEnoughReplicas, RecordTooLarge, StorageError
from tests.groups.classic_scene import REBALANCE_MS, SESSION_MS, Scene


def completing(scene: Scene, count: int = 2) -> list[str]:
    """A group whose members have joined and not synced; the leader first."""
    ids = scene.stable(count)
    joins = [scene.join(each) for each in ids]
    assert scene.state == "CompletingRebalance"
    assert all(join.error is ErrorCode.NONE for join in joins)
    return ids


def test_members_wait_for_the_leaders_assignment_and_get_their_own():
    scene = Scene()
    leader, follower = completing(scene)
    waiting = scene.sync(follower, 3)
    assert waiting.answer is None
    own = scene.sync(leader, 3, {leader: b"partition 0", follower: b"partition 1"})
    assert (own.answer.assignment, waiting.answer.assignment) == (b"partition 0", b"partition 1")
    assert (waiting.answer.protocol_type, waiting.answer.protocol_name) == ("consumer", "range")
    assert scene.state == "Stable"


def test_who_syncs_later_is_answered_at_once():
    scene = Scene()
    leader, follower = completing(scene)
    scene.sync(leader, 3, {follower: b"all"})
    assert scene.sync(follower, 3).answer.assignment == b"all"
    assert scene.sync(leader, 3).answer.assignment == b"", "who was left out owns nothing"


def test_an_assignment_for_strangers_is_passed_over():
    scene = Scene()
    leader, follower = completing(scene)
    scene.sync(leader, 3, {"a stranger": b"all", follower: b"some"})
    assert [member.member_id for member in scene.stored()[-1].members] == [leader, follower]


@pytest.mark.parametrize(
    ("bent", "error"),
    [
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 4}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_who_is_not_of_this_generation_gets_nothing(bent, error):
    scene = Scene()
    leader, _ = completing(scene)
    assert scene.sync(**{"member_id": leader, "generation": 3, "assignments": {}} | bent).error is error
    assert scene.state == "CompletingRebalance"


def test_versions_that_name_no_protocol_are_not_asked_for_it():
    scene = Scene()
    leader, _ = completing(scene)
    assert scene.sync(leader, 3, {}, protocol_type=None, protocol=None).error is ErrorCode.NONE


def test_a_group_without_members_knows_nobody():
    scene = Scene()
    assert scene.sync("me", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    scene.join()
    assert scene.sync("me", 0).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_during_the_join_phase_is_told_to_join():
    scene = Scene()
    leader, follower = scene.stable(2)
    scene.join(leader)
    assert scene.sync(follower, 2).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_rebalance_sends_those_who_wait_back_to_joining():
    scene = Scene()
    _, follower = completing(scene)
    waiting = scene.sync(follower, 3)
    scene.join_new()
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_syncs_twice_is_answered_twice():
    scene = Scene()
    leader, follower = completing(scene)
    first, second = scene.sync(follower, 3), scene.sync(follower, 3)
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    scene.sync(leader, 3, {follower: b"all"})
    assert second.answer.assignment == b"all"


def test_who_waits_for_the_leader_need_not_send_heartbeats():
    scene = Scene()
    leader, follower = completing(scene)
    waiting = scene.sync(follower, 3)
    for _ in range(5):
        scene.pass_ms(SESSION_MS // 2)
        assert scene.heartbeat(leader, 3) is ErrorCode.NONE
    assert waiting.answer is None
    scene.sync(leader, 3, {follower: b"all"})
    assert waiting.answer.assignment == b"all"
    scene.pass_ms(SESSION_MS)
    assert follower not in scene.group.members, "its session began anew with the answer"


def test_members_that_never_sync_are_removed_after_the_rebalance_timeout():
    scene = Scene()
    leader, follower = completing(scene)
    scene.sync(leader, 3, {leader: b"some", follower: b"some"})
    for _ in range(REBALANCE_MS // 5_000):
        assert scene.heartbeat(leader, 3) is ErrorCode.NONE
        assert scene.heartbeat(follower, 3) is ErrorCode.NONE, "it is alive, it just does not ask"
        scene.pass_ms(5_000)
    assert list(scene.group.members) == [leader]
    assert scene.heartbeat(leader, 3) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_never_assigns_is_removed_and_the_others_go_on():
    scene = Scene()
    leader, follower = completing(scene)
    waiting = scene.sync(follower, 3)
    for _ in range(REBALANCE_MS // 5_000):
        scene.heartbeat(leader, 3)
        scene.pass_ms(5_000)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    again = scene.join(follower)
    assert again.answer.leader == follower


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (NotEnoughReplicas, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (StorageError, ErrorCode.NOT_COORDINATOR),
        (RecordTooLarge, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_assignment_that_cannot_be_stored_is_nobodys(failure, told):
    scene = Scene()
    leader, follower = completing(scene)
    waiting = scene.sync(follower, 3)
    scene.fail_writes = failure
    own = scene.sync(leader, 3, {leader: b"0", follower: b"1"})
    assert own.error is waiting.error is told
    assert (own.answer.assignment, waiting.answer.assignment) == (b"", b"")
    assert scene.state == "PreparingRebalance"
    assert all(member.assignment == b"" for member in scene.group.members.values())
    scene.fail_writes = None
    assert scene.heartbeat(follower, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    again = [scene.join(each) for each in (leader, follower)]
    assert {each.answer.generation_id for each in again} == {4}
    scene.settle([leader, follower])


# What is stored


def test_a_generation_is_stored_with_its_members_and_their_assignments():
    scene = Scene()
    ids = scene.stable(2)
    value = scene.stored()[-1]
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 2, "range", ids[0])
    assert [
        (
            member.member_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout,
            member.session_timeout,
            member.subscription,
            member.assignment,
        )
        for member in value.members
    ] == [
        (each, "client", "/127.0.0.1", REBALANCE_MS, SESSION_MS, b"metadata", b"for " + each.encode()) for each in ids
    ]


def test_a_restarted_coordinator_knows_the_stable_group_and_watches_its_members():
    scene = Scene()
    leader, follower = scene.stable(2)
    scene.pass_ms(SESSION_MS - 1)
    scene.heartbeat(leader, 2)
    scene.crash()
    assert scene.state == "Stable"
    assert scene.sync(follower, 2).answer.assignment == b"for " + follower.encode()
    scene.pass_ms(SESSION_MS - 1)
    assert scene.heartbeat(leader, 2) is ErrorCode.NONE, "sessions start anew with the coordinator"
    scene.pass_ms(1)
    assert list(scene.group.members) == [leader]


def test_a_coordinator_restarted_in_mid_rebalance_is_back_in_the_last_generation():
    scene = Scene()
    leader, follower = completing(scene)
    scene.crash()
    assert scene.group.generation == 2
    assert scene.heartbeat(leader, 3) is ErrorCode.ILLEGAL_GENERATION
    assert scene.sync(follower, 3).error is ErrorCode.ILLEGAL_GENERATION
    assert scene.join(follower, protocols={"range": b"new"}).answer is None


def test_a_zombie_with_an_old_generation_never_owns_a_partition():
    """KAFKA-12984: its partitions have been given to somebody else meanwhile."""
    scene = Scene()
    leader, zombie = scene.stable(2)
    scene.join(leader)
    scene.pass_ms(SESSION_MS)
    assert list(scene.group.members) == [leader]
    scene.settle([leader])
    assert scene.heartbeat(zombie, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.sync(zombie, 2).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.sync(zombie, 3).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.join(zombie).error is ErrorCode.UNKNOWN_MEMBER_ID
    back = scene.join_new()
    scene.join(leader)
    assert back.answer.generation_id == 4
