"""Topologies on Spark: one session on two cores for all tests, and brokers as for the tests of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.arrow.conftest import embedded
from tests.spark.conftest import active_session, mark_spark_tests, spark

if TYPE_CHECKING:
    from tests.arrow.conftest import Embedded
    from tests.support.apache_kafka import ApacheKafka

__all__ = ["active_session", "embedded", "spark"]

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_spark_tests(items, _HERE)


@pytest.fixture
def servers(request: pytest.FixtureRequest) -> str:
    """Millstream's address; for tests that are marked `on_either` also Apache Kafka's."""
    found: Embedded | ApacheKafka = request.getfixturevalue(getattr(request, "param", "embedded"))
    return found.bootstrap_servers
