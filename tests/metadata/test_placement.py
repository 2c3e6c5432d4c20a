"""Replicas are striped over racks and brokers, and only active brokers lead."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metadata.clusters import Dice

from millstream.metadata.placement import Candidate, place_replicas
from millstream.protocol.errors import InvalidReplicationFactor


def brokers(*racks: str | None) -> list[Candidate]:
    return [Candidate(broker_id, rack) for broker_id, rack in enumerate(racks)]


@st.composite
def clusters(draw: st.DrawFn) -> list[Candidate]:
    racks = draw(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9))
    fenced = draw(st.lists(st.booleans(), min_size=len(racks), max_size=len(racks)).filter(lambda all_: not all(all_)))
    return [Candidate(id_, rack, asleep) for id_, (rack, asleep) in enumerate(zip(racks, fenced, strict=True))]


@given(cluster=clusters(), partitions=st.integers(0, 30), seed=st.integers(0, 1000), data=st.data())
def test_a_partition_has_distinct_known_brokers_and_an_active_leader(cluster, partitions, seed, data):
    factor = data.draw(st.integers(1, len(cluster)))
    placed = place_replicas(cluster, partitions, factor, Dice(seed))
    assert len(placed) == partitions
    fenced = {broker.broker_id: broker.fenced for broker in cluster}
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert not fenced[replicas[0]]


@given(cluster=clusters(), seed=st.integers(0, 1000), data=st.data())
def test_replicas_land_in_as_many_racks_as_there_are(cluster, seed, data):
    factor = data.draw(st.integers(1, len(cluster)))
    racks = {broker.broker_id: broker.rack for broker in cluster}
    # A rack without active brokers can hold followers only, so the leader's rack is one of the others.
    for replicas in place_replicas(cluster, 5, factor, Dice(seed)):
        assert len({racks[replica] for replica in replicas}) == min(factor, len(set(racks.values())))


@given(seed=st.integers(0, 1000), racks=st.integers(1, 4), per_rack=st.integers(1, 4), rounds=st.integers(1, 3))
def test_leaders_and_replicas_spread_evenly_where_racks_are_equal(seed, racks, per_rack, rounds):
    cluster = [Candidate(id_, f"rack-{id_ % racks}") for id_ in range(racks * per_rack)]
    placed = place_replicas(cluster, len(cluster) * rounds, 1, Dice(seed))
    assert set(Counter(replicas[0] for replicas in placed).values()) == {rounds}


@given(seed=st.integers(0, 1000), racks=st.sampled_from([(None, None, None), ("a", "b", "c")]))
def test_what_a_lost_broker_led_goes_to_all_others(seed, racks):
    placed = place_replicas(brokers(*racks), 60, 3, Dice(seed))
    assert len({tuple(replicas) for replicas in placed}) > 3
    for leader in range(3):
        assert len({replicas[1] for replicas in placed if replicas[0] == leader}) == 2


def test_one_active_broker_leads_all_and_its_followers_take_turns():
    cluster = [Candidate(0), Candidate(1, fenced=True), Candidate(2, fenced=True)]
    placed = place_replicas(cluster, 30, 2, Dice(1))
    assert Counter(map(tuple, placed)) == {(0, 1): 15, (0, 2): 15}


def test_the_same_seed_places_the_same_way():
    cluster = brokers("a", "b", "c", "a", None)
    assert place_replicas(cluster, 20, 3, Dice(7)) == place_replicas(cluster, 20, 3, Dice(7))


@pytest.mark.parametrize(
    ("cluster", "factor", "reason"),
    [
        (brokers(None), 2, "A replication factor of 2 needs as many brokers; 1 are registered."),
        (brokers(None), 0, "The replication factor must be above 0, and not 0."),
        ([Candidate(1, None, fenced=True)], 1, "No broker is active: all that are registered are fenced."),
        ([], 1, "No broker is active: all that are registered are fenced."),
    ],
)
def test_what_cannot_be_placed_is_refused(cluster, factor, reason):
    with pytest.raises(InvalidReplicationFactor, match=reason):
        place_replicas(cluster, 1, factor, Dice(0))
