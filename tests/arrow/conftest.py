"""Every claim about Arrow holds against Millstream, embedded in this process, and against Apache Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from millstream import Broker
from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.sync import SyncClient
from tests.support.topics import until_led

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.apache_kafka import ApacheKafka


class Cluster(Protocol):
    """What these tests ask of a broker."""

    @property
    def bootstrap_servers(self) -> str: ...
    @property
    def data_directory(self) -> Path: ...


class Embedded:
    """Millstream in a thread of this process."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def bootstrap_servers(self) -> str:
        return self._broker.bootstrap_servers

    @property
    def data_directory(self) -> Path:
        return Path(self._broker.data_dir)


@pytest.fixture(scope="session")
def embedded() -> Iterator[Embedded]:
    settings = {"offsets.topic.num.partitions": 4, "transaction.state.log.num.partitions": 4}
    with Broker(settings=settings) as broker:
        yield Embedded(broker)


@pytest.fixture(scope="session", params=["embedded", pytest.param("apache_kafka", marks=pytest.mark.java)])
def cluster(request: pytest.FixtureRequest) -> Embedded | ApacheKafka:
    """Both, one after the other."""
    found: Embedded | ApacheKafka = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def bootstrap(cluster: Cluster) -> str:
    return cluster.bootstrap_servers


@pytest.fixture
def make_topic(bootstrap: str, fresh_name: str) -> Callable[..., str]:
    """Makes a topic with a name of the test's own; `suffix` tells several apart."""

    def make(partitions: int = 1, suffix: str = "", **configs: str) -> str:
        name = fresh_name + suffix
        wanted = NewTopic(name, partitions, 1, configs={key.replace("_", "."): value for key, value in configs.items()})
        with SyncClient({"bootstrap.servers": bootstrap}) as client:
            raise_first(client.run(create_topics, [wanted]))
        until_led(bootstrap, name, partitions)
        return name

    return make


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    """A topic with one partition."""
    return make_topic()
