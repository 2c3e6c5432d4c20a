"""How many replicas the coordinators' own topics get."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from millstream.broker.coordinator_topics import _brokers_to_come


@pytest.mark.parametrize(
    ("brokers", "voters", "to_come"),
    [
        ((), (1,), 1),
        ((1,), (1,), 1),
        # Two of three nodes that are both have come so far.
        ((1, 2), (1, 2, 3), 3),
        ((1, 2, 3, 4), (1, 2, 3), 4),
        # Controllers that are no brokers never hold a replica.
        ((1,), (101, 102, 103), 1),
        ((1, 2, 3), (101,), 3),
    ],
)
def test_a_cluster_that_is_still_starting_waits_for_all_who_vote(
    brokers: tuple[int, ...], voters: tuple[int, ...], to_come: int
) -> None:
    quorum = SimpleNamespace(voters=SimpleNamespace(ids=lambda: voters))
    node: Any = SimpleNamespace(
        image=SimpleNamespace(brokers=dict.fromkeys(brokers)),
        controller=SimpleNamespace(log=SimpleNamespace(quorum=quorum)),
    )
    assert _brokers_to_come(node) == to_come
