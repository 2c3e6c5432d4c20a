"""Heartbeat, LeaveGroup, and members that go silent."""

from __future__ import annotations

import pytest

from millstream.protocol.errors import ErrorCode, NotEnoughReplicas
from tests.groups.classic_scene import SESSION_MS, Scene

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


# Heartbeats


def test_a_heartbeat_keeps_a_member_in():
    scene = Scene()
    (member,) = scene.stable()
    for _ in range(5):
        scene.pass_ms(SESSION_MS - 1)
        assert scene.heartbeat(member, 1) is NONE
    scene.pass_ms(SESSION_MS)
    assert scene.heartbeat(member, 1) is UNKNOWN
    assert scene.state == "Empty"


@pytest.mark.parametrize(
    ("member", "generation", "instance", "error"),
    [
        (None, 0, None, ErrorCode.ILLEGAL_GENERATION),
        (None, 2, None, ErrorCode.ILLEGAL_GENERATION),
        (None, -1, None, ErrorCode.ILLEGAL_GENERATION),
        ("nobody", 1, None, UNKNOWN),
        ("", 1, None, UNKNOWN),
        (None, 1, "nobody", UNKNOWN),
    ],
)
def test_a_heartbeat_of_somebody_else_is_refused(member, generation, instance, error):
    scene = Scene()
    (known,) = scene.stable()
    assert scene.heartbeat(known if member is None else member, generation, instance) is error


def test_a_heartbeat_to_no_group_is_refused():
    assert Scene().heartbeat("me", 1) is UNKNOWN


def test_members_hear_of_a_rebalance_by_their_heartbeats():
    scene = Scene()
    leader, follower = scene.stable(2)
    scene.join(leader)
    for _ in range(3):
        scene.pass_ms(SESSION_MS - 1)
        assert scene.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS, "and they stay members by them"
    scene.join(follower)
    assert scene.heartbeat(follower, 3) is NONE, "from the answer to JoinGroup on"


def test_a_member_that_goes_silent_is_replaced_by_a_rebalance():
    scene = Scene()
    leader, silent = scene.stable(2)
    scene.pass_ms(SESSION_MS // 2)
    scene.heartbeat(leader, 2)
    scene.pass_ms(SESSION_MS // 2)
    assert list(scene.group.members) == [leader]
    assert silent not in scene.group.members
    assert scene.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.join(leader).answer.generation_id == 3


def test_a_committed_offset_counts_as_a_heartbeat():
    scene = Scene()
    (member,) = scene.stable()
    (timer,) = scene.group.committed(member)
    assert timer.delay_ms == SESSION_MS
    assert scene.group.committed("nobody") == ()


# Leaving


def test_the_last_one_to_leave_empties_the_group():
    scene = Scene()
    (member,) = scene.stable()
    scene.pass_ms(5)
    assert scene.leave((member, None)) == [NONE]
    assert scene.state == "Empty"
    value = scene.stored()[-1]
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 2, None, None)
    assert value.members == []
    assert value.current_state_timestamp == scene.now_ms, "from here on its offsets age"


def test_others_rebalance_when_one_leaves():
    scene = Scene()
    leader, follower = scene.stable(2)
    assert scene.leave((leader, None)) == [NONE]
    assert scene.state == "PreparingRebalance"
    assert scene.join(follower).answer.leader == follower


def test_a_rebalance_is_complete_when_the_one_it_waited_for_leaves():
    scene = Scene()
    leader, follower = scene.stable(2)
    waiting = scene.join(leader)
    scene.leave((follower, None))
    assert waiting.error is NONE


def test_whoever_leaves_while_waiting_is_answered():
    scene = Scene()
    leader, follower = scene.stable(2)
    joining = scene.join(leader)
    scene.leave((leader, None))
    assert joining.error is UNKNOWN
    scene.join(follower)
    newcomer = scene.join_new()
    scene.join(follower)
    syncing = scene.sync(newcomer.answer.member_id, scene.group.generation)
    assert syncing.answer is None
    scene.leave((newcomer.answer.member_id, None))
    assert syncing.error is UNKNOWN


def test_several_leave_at_once_each_with_a_result():
    scene = Scene()
    ids = scene.stable(3)
    assert scene.leave((ids[0], None), ("nobody", None), (ids[2], None), ("", None)) == [NONE, UNKNOWN, NONE, UNKNOWN]
    assert list(scene.group.members) == [ids[1]]


def test_who_was_only_promised_an_id_can_leave():
    scene = Scene()
    told = scene.join()
    assert scene.leave((told.answer.member_id, None)) == [NONE]
    assert scene.leave((told.answer.member_id, None)) == [UNKNOWN]


def test_nobody_leaves_a_group_that_does_not_exist():
    assert Scene().leave(("me", None)) is UNKNOWN


def test_an_empty_group_that_cannot_be_stored_is_empty_all_the_same():
    """As in Kafka: after a crash the last generation would be back, and its members time out."""
    scene = Scene()
    (member,) = scene.stable()
    scene.fail_writes = NotEnoughReplicas
    assert scene.leave((member, None)) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert scene.state == "Empty"
    scene.fail_writes = None
    scene.crash()
    assert scene.state == "Stable"
    scene.pass_ms(SESSION_MS)
    assert scene.state == "Empty"


def test_the_answers_of_a_decision_are_given_even_if_its_record_cannot_be_written():
    scene = Scene(group_initial_rebalance_delay_ms=600_000)
    waiting = scene.join_new()
    scene.fail_writes = NotEnoughReplicas
    scene.pass_ms(5 * 60 * 1000)
    assert waiting.error is UNKNOWN
    assert scene.state == "Empty"
