"""Topologies on Spark: one session on two cores for all tests, and brokers as for the tests of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.arrow.conftest import embedded
from tests.spark.conftest import active_session, spark

if TYPE_CHECKING:
    from tests.arrow.conftest import Embedded

__all__ = ["active_session", "embedded", "spark"]

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.java)
            item.add_marker(pytest.mark.slow)
            for category in ("ResourceWarning", "DeprecationWarning", "FutureWarning", "UserWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{category}"))


@pytest.fixture
def servers(embedded: Embedded) -> str:
    return embedded.bootstrap_servers
