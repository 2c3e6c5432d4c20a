"""JoinGroup, rule by rule."""

from __future__ import annotations

import pytest

from millstream.protocol.errors import ErrorCode, NotEnoughReplicas
from tests.groups.classic_scene import GROUP, REBALANCE_MS, SESSION_MS, Scene

INT_MAX = 2**31 - 1


# Ids


def test_a_new_member_is_first_told_its_id():
    scene = Scene()
    told = scene.join(client_id="billing")
    assert told.error is ErrorCode.MEMBER_ID_REQUIRED
    assert told.answer.member_id == "billing-00000000-0000-0000-0000-000000000001"
    assert scene.state == "Empty"
    joined = scene.join(told.answer.member_id)
    scene.pass_ms(0)
    assert joined.error is ErrorCode.NONE
    assert joined.answer.member_id == told.answer.member_id


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_an_old_client_is_a_member_at_once(version):
    scene = Scene()
    joined = scene.join(version=version)
    scene.pass_ms(0)
    assert joined.error is ErrorCode.NONE
    assert joined.answer.generation_id == 1


def test_an_id_that_was_never_given_is_unknown():
    scene = Scene()
    assert scene.join("me").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert GROUP not in scene.machine.groups, "a group is made for newcomers only"
    scene.stable()
    assert scene.join("me").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_is_not_used_is_forgotten_after_the_session_timeout():
    scene = Scene()
    told = scene.join()
    scene.pass_ms(SESSION_MS + 1)
    assert scene.join(told.answer.member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_those_who_were_promised_an_id():
    scene = Scene()
    (first,) = scene.stable()
    told = scene.join()
    again = scene.join(first)
    assert again.answer is None, "somebody is about to join"
    scene.pass_ms(SESSION_MS)
    assert again.error is ErrorCode.NONE, "it did not"
    assert scene.join(told.answer.member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


# Refusals


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, INT_MAX, 0, -1])
def test_a_session_timeout_out_of_bounds_is_refused(session_ms):
    scene = Scene()
    assert scene.join(session_ms=session_ms).error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert GROUP not in scene.machine.groups


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"protocol_type": "connect"}, id="another type"),
        pytest.param({"protocols": {"sticky": b""}}, id="no protocol in common"),
        pytest.param({"protocols": {}}, id="no protocol"),
    ],
)
def test_who_cannot_agree_with_the_group_is_refused(odd):
    scene = Scene()
    scene.stable(2)
    assert scene.join(**odd).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("odd", [{"protocol_type": ""}, {"protocols": {}}])
def test_a_first_member_without_protocol_is_refused(odd):
    scene = Scene()
    assert scene.join(**odd).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_takes_in_no_more_than_its_size():
    scene = Scene(group_max_size=2)
    scene.stable(2)
    refused = scene.join()
    assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.answer.member_id == ""
    assert scene.state == "Stable"


def test_of_a_group_that_is_too_large_after_a_restart_the_last_to_come_have_to_go():
    scene = Scene()
    ids = scene.stable(3)
    scene.settings = Scene(group_max_size=2).settings
    scene.crash()
    assert scene.state == "PreparingRebalance"
    joins = [scene.join(each) for each in ids]
    assert [join.error for join in joins][2] is ErrorCode.GROUP_MAX_SIZE_REACHED
    scene.pass_ms(REBALANCE_MS)
    assert [join.error for join in joins] == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]


# Generations


def test_the_leader_alone_is_told_what_the_members_said():
    scene = Scene()
    (first,) = scene.stable()
    second = scene.join_new(protocols={"range": b"other"})
    again = scene.join(first)
    assert again.answer.leader == second.answer.leader == first
    assert [(each.member_id, each.metadata) for each in again.answer.members] == [
        (first, b"metadata"),
        (second.answer.member_id, b"other"),
    ]
    assert second.answer.members == []
    assert again.answer.generation_id == second.answer.generation_id == 2
    assert again.answer.protocol_type == "consumer"
    assert again.answer.protocol_name == "range"


def test_the_protocol_that_most_members_like_best_is_chosen_among_those_that_all_know():
    scene = Scene()
    a = scene.join(version=3, protocols={"a-only": b"", "sticky": b"", "range": b""})
    b = scene.join(version=3, protocols={"range": b"", "sticky": b""})
    c = scene.join(version=3, protocols={"range": b"", "sticky": b""})
    scene.pass_ms(0)
    assert {each.answer.protocol_name for each in (a, b, c)} == {"range"}


def test_the_rebalance_timeout_of_the_slowest_member_counts():
    scene = Scene()
    scene.stable(2, rebalance_ms=20_000)
    fast = scene.join(version=3, rebalance_ms=90_000)
    scene.pass_ms(1)
    assert fast.answer is None
    # The session of those who don't come back ends earlier, and with it the wait.
    scene.pass_ms(SESSION_MS)
    assert fast.error is ErrorCode.NONE
    assert len(scene.group.members) == 1


def test_members_who_do_not_come_back_are_removed_after_the_rebalance_timeout():
    scene = Scene()
    first, second = scene.stable(2, session_ms=100_000)
    newcomer = scene.join_new(session_ms=100_000)
    again = scene.join(first, session_ms=100_000)
    scene.pass_ms(REBALANCE_MS - 1)
    assert (newcomer.answer, again.answer) == (None, None)
    scene.pass_ms(1)
    assert newcomer.error is again.error is ErrorCode.NONE
    assert scene.heartbeat(second, again.answer.generation_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_version_0_has_no_rebalance_timeout_but_the_sessions():
    scene = Scene()
    scene.join(version=0, session_ms=30_000, rebalance_ms=-1)
    assert scene.group.rebalance_timeout_ms == 30_000


def test_another_leader_is_found_if_the_leader_does_not_come_back():
    scene = Scene()
    leader, other = scene.stable(2, session_ms=100_000)
    scene.join_new(session_ms=100_000)
    again = scene.join(other, session_ms=100_000)
    scene.pass_ms(REBALANCE_MS)
    assert again.answer.leader == other
    assert len(again.answer.members) == 2
    assert leader not in scene.group.members


@pytest.mark.parametrize("timeout_ms", [INT_MAX, -1, 0, -INT_MAX - 1])
def test_the_oddest_rebalance_timeouts_do_no_harm(timeout_ms):
    scene = Scene()
    scene.join(version=3, rebalance_ms=timeout_ms)
    for _ in range(3):
        newcomer = scene.join(version=3, rebalance_ms=timeout_ms)
        scene.pass_ms(SESSION_MS)
        assert newcomer.error is ErrorCode.NONE


# Coming back


def test_a_member_that_missed_the_answer_is_told_again():
    scene = Scene()
    first, second = scene.stable(2)
    scene.join_new()
    told = [scene.join(each) for each in (first, second)]
    assert scene.state == "CompletingRebalance"
    again = scene.join(first)
    assert again.answer == told[0].answer
    assert scene.state == "CompletingRebalance"


def test_a_follower_without_news_does_not_disturb_a_stable_group():
    scene = Scene()
    _, follower = scene.stable(2)
    generation = scene.group.generation
    again = scene.join(follower)
    assert again.error is ErrorCode.NONE
    assert again.answer.generation_id == generation
    assert scene.state == "Stable"


def test_the_leader_starts_a_rebalance_by_joining():
    scene = Scene()
    leader, _ = scene.stable(2)
    assert scene.join(leader).answer is None
    assert scene.state == "PreparingRebalance"


def test_a_member_with_another_subscription_starts_a_rebalance():
    scene = Scene()
    _, follower = scene.stable(2)
    assert scene.join(follower, protocols={"range": b"something else"}).answer is None
    assert scene.state == "PreparingRebalance"


def test_a_member_that_joins_twice_is_answered_twice():
    scene = Scene()
    leader, _ = scene.stable(2)
    first = scene.join(leader)
    second = scene.join(leader)
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.answer is None


# The first wait


def test_the_first_members_gather_for_a_while():
    scene = Scene(group_initial_rebalance_delay_ms=3_000)
    first = scene.join_new()
    scene.pass_ms(2_999)
    assert first.answer is None
    scene.pass_ms(1)
    assert first.error is ErrorCode.NONE


def test_each_newcomer_extends_the_first_wait_up_to_the_rebalance_timeout():
    scene = Scene(group_initial_rebalance_delay_ms=3_000)
    joins = [scene.join_new(rebalance_ms=7_000)]
    for _ in range(10):
        scene.pass_ms(700)
        if joins[0].answer is not None:
            break
        joins.append(scene.join_new(rebalance_ms=7_000))
    assert scene.now_ms - 1_000_000 == 7_000
    assert {join.answer.generation_id for join in joins} == {1}


def test_a_new_member_that_never_hears_its_answer_does_not_stay_for_ever():
    scene = Scene()
    (first,) = scene.stable(session_ms=1_000_000, rebalance_ms=1_000_000)
    newcomer = scene.join_new(session_ms=1_000_000, rebalance_ms=1_000_000)
    scene.pass_ms(5 * 60 * 1000)
    assert newcomer.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(scene.group.members) == [first]


# What is stored


def test_a_new_group_is_stored_as_empty():
    scene = Scene()
    scene.join()
    (value,) = scene.stored()
    assert (value.protocol_type, value.generation, value.protocol, value.leader, value.members) == (
        "",
        0,
        None,
        None,
        [],
    )
    assert value.current_state_timestamp == 1_000_000


def test_a_group_that_cannot_be_stored_does_not_exist():
    scene = Scene()
    scene.fail_writes = NotEnoughReplicas
    assert scene.join().error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert scene.join(version=3).error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert scene.machine.groups == {}
