"""What is stored of a classic group, to the byte."""

from __future__ import annotations

from millstream.groups.classic.group import ClassicGroup
from millstream.groups.classic.state import GroupState
from millstream.protocol.coordinator_frame import decode_coordinator_key
from millstream.protocol.messages.groups.group_metadata import GroupMetadataValue, MemberMetadata
from tests.groups.classic_scene import Scene


def test_a_record_has_the_bytes_that_apache_kafka_4_3_writes():
    """The layout of version 3, spelled out: Kafka writes no newer one, whatever the metadata version."""
    scene = Scene()
    joined = scene.join(version=3, instance_id=None, protocols={"range": b"sub"}, client_id="c")
    scene.pass_ms(0)
    member_id = joined.answer.member_id
    scene.sync(member_id, 1, {member_id: b"own"})
    key, value = scene.log[-1]

    def string(text: str) -> bytes:
        return len(text).to_bytes(2) + text.encode()

    assert key == b"\0\2" + string("g")
    assert value == b"".join(
        (
            b"\0\3",
            string("consumer"),
            (1).to_bytes(4),
            string("range"),
            string(member_id),
            (1_000_000).to_bytes(8),
            (1).to_bytes(4),
            string(member_id),
            b"\xff\xff",
            string("c"),
            string("/127.0.0.1"),
            (60_000).to_bytes(4),
            (10_000).to_bytes(4),
            (3).to_bytes(4) + b"sub",
            (3).to_bytes(4) + b"own",
        )
    )
    assert decode_coordinator_key("groups", key).group == "g"


def restored(**fields: object) -> ClassicGroup:
    value = {"protocol_type": "consumer", "generation": 7, "protocol": None, "leader": None, "members": []} | fields
    return ClassicGroup.restored("g", GroupMetadataValue(**value))  # type: ignore[arg-type]


def member(name: str, **fields: object) -> MemberMetadata:
    known = {
        "member_id": name,
        "client_id": "c",
        "client_host": "/h",
        "session_timeout": 10_000,
        "subscription": b"s",
        "assignment": b"a",
    }
    return MemberMetadata(**known | fields)  # type: ignore[arg-type]


def test_a_value_without_members_is_an_empty_group():
    group = restored()
    assert (group.state, group.generation, group.leader) == (GroupState.EMPTY, 7, None)
    assert group.state_since_ms is None, "a broker before 2.1 wrote it"
    assert restored(protocol_type="").protocol_type is None


def test_a_value_with_members_is_a_stable_group():
    group = restored(protocol="range", leader="b", members=[member("a"), member("b", group_instance_id="i")])
    assert group.state is GroupState.STABLE
    assert group.leader == "b"
    assert group.static_members == {"i": "b"}
    assert group.members["a"].rebalance_timeout_ms == 10_000, "a broker before 0.10.1 wrote no rebalance timeout"
    assert group.select_protocol() == "range"


def test_a_leader_that_is_no_member_is_not_believed():
    assert restored(protocol="range", leader="gone", members=[member("a")]).leader == "a"
