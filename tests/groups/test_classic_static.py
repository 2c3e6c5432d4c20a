"""Static members (KIP-345): an instance id that survives restarts, and whoever used it before is fenced."""

from __future__ import annotations

import pytest

from millstream.protocol.errors import ErrorCode, NotEnoughReplicas
from tests.groups.classic_scene import REBALANCE_MS, SESSION_MS, Scene

NONE = ErrorCode.NONE
FENCED = ErrorCode.FENCED_INSTANCE_ID


def stable(scene: Scene) -> tuple[str, str]:
    """A stable group of the static members a (who leads) and b."""
    a = scene.join(instance_id="a")
    b = scene.join(instance_id="b")
    scene.pass_ms(0)
    ids = (a.answer.member_id, b.answer.member_id)
    for member_id, instance_id in zip(reversed(ids), "ba", strict=True):
        scene.sync(member_id, 1, {each: b"for " + each.encode() for each in ids}, instance_id=instance_id)
    assert scene.state == "Stable"
    return ids


def test_a_static_member_needs_no_second_join():
    scene = Scene()
    joined = scene.join(instance_id="a")
    scene.pass_ms(0)
    assert joined.error is NONE
    assert joined.answer.member_id == "a-00000000-0000-0000-0000-000000000001"


@pytest.mark.parametrize("version", [5, 8, 9])
@pytest.mark.parametrize("instance_id", ["a", "b"])
def test_one_that_comes_back_to_a_stable_group_causes_no_rebalance(version, instance_id):
    scene = Scene()
    ids = dict(zip("ab", stable(scene), strict=True))
    back = scene.join(instance_id=instance_id, version=version)
    assert back.error is NONE
    new_id = back.answer.member_id
    assert new_id != ids[instance_id]
    assert back.answer.generation_id == 1
    assert scene.state == "Stable"
    assert scene.sync(new_id, 1, instance_id=instance_id).answer.assignment == b"for " + ids[instance_id].encode()
    leads = instance_id == "a"
    if version >= 9:
        assert back.answer.skip_assignment == leads
        assert len(back.answer.members) == (2 if leads else 0)
        assert (back.answer.leader == new_id) == leads
    else:
        assert not back.answer.skip_assignment
        assert back.answer.members == []
        assert back.answer.leader == ids["a"], "an old client must not think that it has to assign"


def test_coming_back_is_stored():
    scene = Scene()
    a, b = stable(scene)
    back = scene.join(instance_id="a")
    value = scene.stored()[-1]
    assert value.generation == 1
    assert value.leader == back.answer.member_id
    assert {(member.group_instance_id, member.member_id, member.assignment) for member in value.members} == {
        ("a", back.answer.member_id, b"for " + a.encode()),
        ("b", b, b"for " + b.encode()),
    }
    scene.crash()
    assert scene.heartbeat(back.answer.member_id, 1, "a") is NONE
    assert scene.heartbeat(a, 1, "a") is FENCED


def test_the_former_one_is_fenced():
    scene = Scene()
    a, _ = stable(scene)
    scene.join(instance_id="a")
    assert scene.heartbeat(a, 1, "a") is FENCED
    assert scene.sync(a, 1, instance_id="a").error is FENCED
    assert scene.join(a, instance_id="a").error is FENCED
    assert scene.leave((a, "a")) == [FENCED]
    assert scene.heartbeat(a, 1) is ErrorCode.UNKNOWN_MEMBER_ID, "without the instance id, too"


def test_one_that_comes_back_with_another_choice_of_protocol_starts_a_rebalance():
    scene = Scene()
    both = {"range": b"", "sticky": b""}
    a = scene.join(instance_id="a", protocols=both)
    scene.join(instance_id="b", protocols=both)
    scene.pass_ms(0)
    a_id = a.answer.member_id
    scene.sync(a_id, 1, {}, instance_id="a")
    assert scene.group.protocol == "range"
    back = scene.join(instance_id="b", protocols={"sticky": b""})
    assert back.answer is None
    assert scene.state == "PreparingRebalance"


def test_one_that_comes_back_while_others_sync_starts_a_rebalance():
    """The leader may just be assigning to its former id."""
    scene = Scene()
    a, _ = stable(scene)
    scene.join(a, instance_id="a")
    scene.join(scene.group.static_members["b"], instance_id="b")
    assert scene.state == "CompletingRebalance"
    waiting = scene.sync(scene.group.static_members["b"], 2, instance_id="b")
    back = scene.join(instance_id="b")
    assert waiting.error is FENCED
    assert back.answer is None
    assert scene.state == "PreparingRebalance"


def test_a_join_that_waits_is_fenced_by_the_next_one_of_its_instance():
    scene = Scene()
    a, b = stable(scene)
    first = scene.join(a, instance_id="a")
    second = scene.join(instance_id="a")
    assert first.error is FENCED
    assert first.answer.member_id == a
    assert second.answer is None
    scene.join(b, instance_id="b")
    assert second.error is NONE


def test_one_that_is_away_is_not_removed_by_a_rebalance_but_by_its_session():
    scene = Scene()
    a, b = stable(scene)
    waiting = scene.join(a, instance_id="a", session_ms=100_000)
    for _ in range(REBALANCE_MS // 5_000):
        scene.heartbeat(b, 1, "b")
        scene.pass_ms(5_000)
    assert waiting.answer.generation_id == 2
    assert {member.member_id for member in waiting.answer.members} == {a, b}, "its place is kept"
    scene.sync(a, 2, {a: b"", b: b""}, instance_id="a")
    scene.pass_ms(SESSION_MS)
    assert list(scene.group.members) == [a]


def test_if_only_static_members_are_left_and_none_comes_the_group_waits_for_their_sessions():
    scene = Scene()
    a, b = stable(scene)
    scene.leave((a, "a"))
    assert scene.state == "PreparingRebalance"
    for _ in range(REBALANCE_MS // 5_000 + 2):
        scene.heartbeat(b, 1, "b")
        scene.pass_ms(5_000)
    assert scene.state == "PreparingRebalance"
    again = scene.join(b, instance_id="b")
    assert again.answer.generation_id == 2


def test_an_admin_removes_a_static_member_by_its_instance_id():
    scene = Scene()
    a, b = stable(scene)
    assert scene.leave(("", "a"), ("", "nobody")) == [NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(scene.group.members) == [b]
    assert scene.leave((a, "b")) == [FENCED]


def test_if_coming_back_cannot_be_stored_the_former_one_stays():
    scene = Scene()
    a, _ = stable(scene)
    scene.fail_writes = NotEnoughReplicas
    assert scene.join(instance_id="a", protocols={"range": b"new"}).error is ErrorCode.NOT_ENOUGH_REPLICAS
    scene.fail_writes = None
    assert scene.heartbeat(a, 1, "a") is NONE
    assert scene.group.leader == a
    assert scene.group.members[a].protocols == {"range": b"metadata"}
    assert scene.sync(a, 1, instance_id="a").answer.assignment == b"for " + a.encode()
    scene.pass_ms(SESSION_MS)
    assert scene.state == "Empty", "and it is watched"


def test_a_promised_id_is_never_a_static_members():
    scene = Scene()
    told = scene.join()
    assert scene.join(told.answer.member_id, instance_id="a").error is ErrorCode.UNKNOWN_MEMBER_ID
