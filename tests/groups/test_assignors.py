"""What the server-side assignors promise, whoever else gives the same answer (test_assignors_java.py)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.groups.assignors import ASSIGNORS
from millstream.groups.assignors.java_order import string_hash, uuid_hash
from millstream.groups.assignors.spec import GroupSpec, MemberSpec, Partitions
from millstream.protocol.uuid import Uuid

TOPICS = [Uuid(bytes([number] * 16)) for number in range(1, 5)]


@st.composite
def specs(draw: st.DrawFn, *, homogeneous: bool | None = None) -> GroupSpec:
    counts = {topic: draw(st.integers(1, 12)) for topic in TOPICS}
    same = draw(st.booleans()) if homogeneous is None else homogeneous
    shared = frozenset(draw(st.lists(st.sampled_from(TOPICS), unique=True)))
    members = {}
    for number in range(draw(st.integers(1, 8))):
        topics = shared if same else frozenset(draw(st.lists(st.sampled_from(TOPICS), unique=True)))
        members[f"m{number}"] = MemberSpec(topics, {})
    return GroupSpec(members, counts, same)


def flat(partitions: Partitions) -> set[tuple[Uuid, int]]:
    return {(topic, index) for topic, indexes in partitions.items() for index in indexes}


@given(spec=specs(), name=st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_has_one_owner_who_reads_its_topic(spec: GroupSpec, name: str) -> None:
    assigned = ASSIGNORS[name](spec)
    read = {topic for member in spec.members.values() for topic in member.topics}
    wanted = sorted((topic, index) for topic in read for index in range(spec.partition_counts[topic]))
    assert sorted(pair for partitions in assigned.values() for pair in flat(partitions)) == wanted
    for member, partitions in assigned.items():
        assert set(partitions) <= spec.members[member].topics
        assert all(partitions.values()), "no topic without partitions"


@given(spec=specs(homogeneous=True))
def test_uniform_shares_evenly(spec: GroupSpec) -> None:
    sizes = [len(flat(partitions)) for partitions in ASSIGNORS["uniform"](spec).values()]
    assert not sizes or max(sizes) - min(sizes) <= 1


@given(spec=specs(), gone=st.integers(0, 7))
def test_uniform_lets_members_keep_what_they_have_when_one_leaves(spec: GroupSpec, gone: int) -> None:
    before = ASSIGNORS["uniform"](spec)
    names = list(spec.members)
    leaver = names[gone % len(names)]
    left = {
        name: MemberSpec(member.topics, before.get(name, {})) for name, member in spec.members.items() if name != leaver
    }
    if not left or not spec.homogeneous:
        return
    after = ASSIGNORS["uniform"](GroupSpec(left, spec.partition_counts, homogeneous=True))
    for name in left:
        assert flat(before.get(name, {})) <= flat(after.get(name, {}))


@given(spec=specs())
def test_uniform_changes_nothing_when_nothing_changed(spec: GroupSpec) -> None:
    before = ASSIGNORS["uniform"](spec)
    again = GroupSpec(
        {name: MemberSpec(member.topics, before.get(name, {})) for name, member in spec.members.items()},
        spec.partition_counts,
        spec.homogeneous,
    )
    assert ASSIGNORS["uniform"](again) == before


def test_range_gives_neighbours_and_the_first_ones_more() -> None:
    (topic, *_) = TOPICS
    members = {name: MemberSpec(frozenset({topic}), {}) for name in ("b", "a", "c")}
    assigned = ASSIGNORS["range"](GroupSpec(members, {topic: 7}, homogeneous=True))
    assert {name: sorted(partitions[topic]) for name, partitions in assigned.items()} == {
        "a": [0, 1, 2],
        "b": [3, 4],
        "c": [5, 6],
    }


def test_range_keeps_places_across_topics_and_puts_static_members_first() -> None:
    one, two, *_ = TOPICS
    both = frozenset({one, two})
    members = {"a": MemberSpec(both, {}), "z": MemberSpec(both, {}, "instance")}
    assigned = ASSIGNORS["range"](GroupSpec(members, {one: 2, two: 2}, homogeneous=True))
    assert assigned["z"] == {one: frozenset({0}), two: frozenset({0})}
    assert assigned["a"] == {one: frozenset({1}), two: frozenset({1})}


def test_a_group_without_members_or_topics_has_nothing_to_assign() -> None:
    for assign in ASSIGNORS.values():
        assert not any(assign(GroupSpec({}, {}, homogeneous=True)).values())
        nothing = GroupSpec({"a": MemberSpec(frozenset(), {})}, {}, homogeneous=True)
        assert not any(assign(nothing).values())


def test_hash_codes_are_javas() -> None:
    assert string_hash("hello") == 99162322
    assert string_hash("") == 0
    assert string_hash("polygenelubricants") == 2**31
    assert uuid_hash(Uuid(bytes(15) + b"\1")) == 1
