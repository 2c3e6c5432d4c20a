"""Fixtures for tests that need a Kafka: installed with the package, nothing to configure.

    def test_orders(kafka_broker, kafka_topic):
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
        producer.produce(kafka_topic, b"hello")

The broker is imported when the first test asks for it: a session that needs none does not pay for it.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.embedded import Broker


_numbers = count(1)


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[Broker]:
    """One broker for the whole test session, on a temporary directory."""
    from millstream.embedded import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: Broker, request: pytest.FixtureRequest) -> str:
    """A fresh topic of one partition, named after the test."""
    stem = re.sub(r"[^a-zA-Z0-9-]+", "-", request.node.name)[:200].strip("-")
    # The same test may run again in this session (parameters, reruns): a number keeps its topics apart.
    return kafka_broker.create_topic(f"{stem}-{next(_numbers)}")
