"""Thirty brokers and six hundred partitions; `make soak` has three hundred and ten thousand."""

from __future__ import annotations

import pytest

from tests.sim.large_cluster import Large


@pytest.mark.slow
def test_a_rack_and_the_controller_are_lost_and_every_partition_gets_a_leader(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = Large(brokers=30, partitions=600, seed=1).run()
    phases = {phase.name: phase for phase in outcome.phases}
    # What has been waited for is that every partition is led by a living member of its ISR.
    assert phases["a rack loses its power"].elections > 100
    assert phases["a rack and the active controller"].elections > 100
    assert phases["the active controller loses its power"].elections == 0
    assert outcome.fenced_by_mistake == 0
    with capsys.disabled():
        print(f"\n{outcome}")
