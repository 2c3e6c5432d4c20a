"""Plans of moves: as little as possible moves, racks stay apart, and nothing lands twice on a broker."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.cli.declare import UsageError
from millstream.cli.moves import plan_drain, plan_spread


def test_only_what_is_on_the_broker_moves():
    assigned = {("t", 0): (1, 2), ("t", 1): (2, 3), ("u", 0): (3, 1)}
    plan = plan_drain(assigned, 1, dict.fromkeys((1, 2, 3, 4)))
    assert plan == {("t", 0): (4, 2), ("u", 0): (3, 4)}


def test_a_rack_is_not_given_up():
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    assert plan_drain({("t", 0): (1, 3)}, 1, racks) == {("t", 0): (2, 3)}


def test_what_is_everywhere_cannot_move():
    with pytest.raises(UsageError, match="t-0"):
        plan_drain({("t", 0): (1, 2)}, 1, dict.fromkeys((1, 2)))


def test_a_broker_that_is_stopped_is_drained_as_well():
    assert plan_drain({("t", 0): (9, 2)}, 9, dict.fromkeys((1, 2))) == {("t", 0): (1, 2)}


def test_a_spread_starts_each_partition_one_broker_further():
    plan = plan_spread([("t", index) for index in range(3)], dict.fromkeys((1, 2, 3)), 2)
    assert plan == {("t", 0): (1, 2), ("t", 1): (2, 3), ("t", 2): (3, 1)}
    with pytest.raises(UsageError, match="3 replicas"):
        plan_spread([("t", 0)], dict.fromkeys((1, 2)), 3)


def test_the_next_topic_goes_on_where_the_last_one_ended():
    assert plan_spread([("u", 0)], dict.fromkeys((1, 2, 3)), 2, first_turn=1) == {("u", 0): (2, 3)}


def test_a_spread_takes_other_followers_in_each_round():
    plan = plan_spread([("t", index) for index in range(6)], dict.fromkeys((1, 2, 3)), 2)
    assert {replicas for replicas in plan.values() if replicas[0] == 1} == {(1, 2), (1, 3)}


def test_a_spread_goes_from_rack_to_rack():
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    plan = plan_spread([("t", index) for index in range(6)], racks, 3)
    assert list(plan.values())[:2] == [(1, 3, 5), (3, 5, 2)]
    assert [replicas[0] for replicas in plan.values()] == [1, 3, 5, 2, 4, 6]


@given(
    racks=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=3, max_size=9),
    rounds=st.integers(1, 4),
    replicas=st.integers(1, 3),
)
def test_a_spread_uses_as_many_racks_as_there_are_and_every_leader_alike(racks, rounds, replicas):
    known = dict(enumerate(racks))
    plan = plan_spread([("t", index) for index in range(len(racks) * rounds)], known, replicas)
    assert Counter(each[0] for each in plan.values()) == dict.fromkeys(known, rounds)
    for each in plan.values():
        assert len(set(each)) == replicas
        assert len({known[broker] for broker in each}) == min(replicas, len(set(racks)))


@given(
    brokers=st.integers(4, 8),
    partitions=st.integers(1, 30),
    racks=st.lists(st.sampled_from(["a", "b", None]), min_size=8, max_size=8),
)
def test_a_drained_broker_has_nothing_left_and_the_others_share(brokers, partitions, racks):
    ids = list(range(1, brokers + 1))
    assigned = plan_spread([("t", index) for index in range(partitions)], dict.fromkeys(ids), 3)
    plan = plan_drain(assigned, 1, dict(zip(ids, racks, strict=False)))
    assert plan.keys() == {place for place, replicas in assigned.items() if 1 in replicas}
    for place, replicas in plan.items():
        assert len(set(replicas)) == 3
        assert 1 not in replicas
        assert len(set(replicas) & set(assigned[place])) == 2
