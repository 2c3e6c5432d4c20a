"""Every claim about the client holds against Apache Kafka and against Millstream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.client.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.running import RunningBroker


@pytest.fixture(scope="session", params=[pytest.param("apache_kafka", marks=pytest.mark.java), "millstream"])
def cluster(request: pytest.FixtureRequest) -> RunningBroker:
    """Both, one after the other."""
    found: RunningBroker = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def client(cluster: RunningBroker) -> Iterator[SyncClient]:
    with SyncClient({"bootstrap.servers": cluster.bootstrap_servers, "api.timeout.ms": "60000"}) as made:
        yield made
