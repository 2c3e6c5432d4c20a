"""Controllers that listen on all addresses are registered where the fixed voters know them, active or not."""

from __future__ import annotations

import pytest

from millstream.testing.cluster import CLIENT_PORT, CONTROLLER_PORT, SimulatedCluster


@pytest.mark.parametrize("everywhere", ["", "0.0.0.0"])  # of simulated machines
def test_no_controller_is_registered_as_localhost(everywhere: str) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        for at in cluster.nodes.values():
            at.settings["listeners"] = (
                f"PLAINTEXT://{at.host}:{CLIENT_PORT},CONTROLLER://{everywhere}:{CONTROLLER_PORT}"
            )
        await cluster.start()
        first = cluster.nodes[1].node
        assert first is not None
        await cluster.until(lambda: len(first.image.controllers) == 3, what="all controllers are registered")
        for number, controller in first.image.controllers.items():
            (endpoint,) = controller.endpoints
            assert (endpoint.host, endpoint.port) == (f"node-{number}", CONTROLLER_PORT)

    SimulatedCluster(1, nodes=3).run(scenario)
