"""Many quorum nodes on a network that loses, delays and repeats: what was agreed on stays agreed on."""

from __future__ import annotations

import pytest

from tests.quorum.harness import Harness, describe

SEEDS = 50


@pytest.mark.parametrize("voters", [1, 2, 3, 5])
def test_a_new_quorum_elects_one_leader_and_all_agree_on_its_records(voters: int) -> None:
    quorum = Harness(seed=voters, voters=voters, observers=2, faults=False)
    quorum.settle()
    assert len(quorum.leaders) == 1
    for _ in range(20):
        quorum.tick()
    quorum.settle()
    assert len(quorum.committed) > 5
    assert all(member.log.records == quorum.committed for member in quorum.members.values())


@pytest.mark.parametrize(("voters", "observers"), [(3, 0), (3, 2), (5, 1)])
def test_nothing_committed_is_lost_whatever_happens(voters: int, observers: int) -> None:
    for seed in range(SEEDS):
        quorum = Harness(seed, voters, observers)
        quorum.run(ticks=150)
        quorum.heal()
        before = list(quorum.committed)
        quorum.settle()
        assert quorum.committed[: len(before)] == before, f"seed {seed}"
        assert quorum.committed, f"seed {seed}: {[describe(member) for member in quorum.members.values()]}"


def test_voters_that_come_and_go_lose_nothing_either() -> None:
    changes = 0
    for seed in range(SEEDS):
        quorum = Harness(seed, voters=3, observers=2, dynamic=True)
        quorum.run(ticks=150)
        quorum.heal()
        before = list(quorum.committed)
        quorum.settle()
        assert quorum.committed[: len(before)] == before, f"seed {seed}"
        changes += quorum.reconfigurations
    assert changes > SEEDS


def test_a_leader_that_dies_is_replaced_within_a_few_seconds() -> None:
    for seed in range(50):
        quorum = Harness(seed, faults=False)
        quorum.settle()
        first = quorum.leader
        assert first is not None
        first.crash()
        began_ms = quorum.now_ms
        while quorum.leader is None:
            quorum.tick()
            assert quorum.now_ms - began_ms < 6_000, f"seed {seed}"


def test_a_leader_that_nobody_hears_resigns() -> None:
    for seed in range(20):
        quorum = Harness(seed, faults=False)
        quorum.settle()
        alone = quorum.leader
        assert alone is not None
        quorum.cut |= {(alone.id, other) for other in quorum.members} | {(other, alone.id) for other in quorum.members}
        for _ in range(40):
            quorum.tick()
        assert not alone.node.leads
        assert quorum.leader is not None
        assert quorum.leader.node.epoch > 1


def test_a_node_that_comes_back_from_behind_a_broken_cable_unseats_nobody() -> None:
    for seed in range(20):
        quorum = Harness(seed, faults=False)
        quorum.settle()
        leader = quorum.leader
        assert leader is not None
        epoch = leader.node.epoch
        away = next(member for member in quorum.members.values() if member is not leader)
        quorum.cut |= {(away.id, other) for other in quorum.members} | {(other, away.id) for other in quorum.members}
        for _ in range(100):
            quorum.tick()
        quorum.cut.clear()
        quorum.settle()
        assert quorum.leader is leader
        assert leader.node.epoch == epoch


def test_a_leader_that_stops_hands_over_faster_than_a_timeout() -> None:
    from millstream.quorum.events import Stopping

    for seed in range(20):
        quorum = Harness(seed, faults=False)
        quorum.settle()
        leader = quorum.leader
        assert leader is not None
        leader.step(Stopping())
        quorum.tick()
        quorum.tick()
        assert quorum.leader is not None
        assert quorum.leader is not leader


def test_a_replica_that_was_away_for_long_takes_a_snapshot() -> None:
    quorum = Harness(seed=1, observers=1, faults=False)
    quorum.settle()
    late = quorum.members[4]
    late.crash()
    for _ in range(60):
        quorum.tick()
    for member in quorum.members.values():
        if member.up:
            member.log.compact(member.node.high_watermark)
    late.start()
    quorum.settle()
    assert late.log.start_offset > 10
