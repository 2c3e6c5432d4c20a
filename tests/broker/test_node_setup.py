"""What a node tells others of itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from millstream.broker.node_setup import controller_endpoints
from millstream.settings.effective import Settings
from millstream.settings.listeners import Endpoints

VOTERS = "1@host-1:9093,2@host-2:9093,3@host-3:9093"


def told(listens_on: str, **more: str) -> list[tuple[str, int]]:
    settings = Settings(
        {
            "process.roles": "controller",
            "node.id": "2",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{listens_on}",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )
    host, _, port = listens_on.rpartition(":")
    listener = SimpleNamespace(name="CONTROLLER", host=host, port=int(port), is_controller=True)
    node: Any = SimpleNamespace(settings=settings, endpoints=Endpoints.of(settings), listeners=[listener], node_id=2)
    return [(endpoint.host, endpoint.port) for endpoint in controller_endpoints(node)]


@pytest.mark.parametrize("listens_on", [":9093", "0.0.0.0:9093"])
def test_a_voter_that_listens_everywhere_is_where_the_others_find_it(listens_on: str) -> None:
    assert told(listens_on, controller_quorum_voters=VOTERS) == [("host-2", 9093)]


def test_what_was_said_of_the_listener_itself_counts_more() -> None:
    assert told("10.0.0.2:9094", controller_quorum_voters=VOTERS) == [("10.0.0.2", 9094)]
    assert told(":9093", controller_quorum_voters=VOTERS, advertised_listeners="CONTROLLER://outside:19093") == [
        ("outside", 19093)
    ]
