"""Clients are made once for each broker: some are processes that take seconds to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.adapters import ALL
from tests.clients.bystander import Bystander, created
from tests.clients.reference import Reference
from tests.support.raw import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.adapters.contract import Client
    from tests.support.running import RunningBroker

BY_NAME = {kind.name: kind for kind in ALL}


@pytest.fixture(scope="session")
def made_clients() -> Iterator[dict[tuple[str, str], Client]]:
    made: dict[tuple[str, str], Client] = {}
    yield made
    for client in made.values():
        client.close()


@pytest.fixture
def client(
    request: pytest.FixtureRequest, broker: RunningBroker, made_clients: dict[tuple[str, str], Client]
) -> Client:
    """The client that the test's parameters name, connected to the broker under test."""
    place = (request.param, broker.bootstrap_servers)
    if place not in made_clients:
        made_clients[place] = BY_NAME[request.param](broker.bootstrap_servers)
    return made_clients[place]


@pytest.fixture(scope="session")
def references() -> dict[str, Reference]:
    return {}


@pytest.fixture
def reference(broker: RunningBroker, references: dict[str, Reference]) -> Reference:
    """The client that sets things up and reads back what another one wrote."""
    place = broker.bootstrap_servers
    if place not in references:
        references[place] = Reference(place)
    return references[place]


@pytest.fixture
def topic(reference: Reference, fresh_name: str) -> str:
    """A topic with one partition."""
    reference.create_topic(fresh_name)
    return fresh_name


@pytest.fixture
def bystander(broker: RunningBroker, fresh_name: str) -> Iterator[Bystander]:
    with RawClient.of(broker) as client:
        assert created(client, fresh_name) == ["NONE"]
    watcher = Bystander(broker, fresh_name)
    yield watcher
    watcher.client.close()


@pytest.fixture
def offender(broker: RunningBroker, bystander: Bystander) -> Iterator[RawClient]:
    """Connected after the bystander, so that the bystander has seen the process before."""
    with RawClient.of(broker, timeout_s=60) as client:
        yield client
