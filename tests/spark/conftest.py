"""Spark on two cores of this machine, one session for all tests, against Millstream and against Apache Kafka.

What uses a session needs Java. Spark and its bridge warn about their own sockets and deprecations, which is theirs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.arrow.conftest import bootstrap, cluster, embedded
from tests.arrow.conftest import make_topic as make_topic_with_retention
from tests.support.requirements import require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

# The brokers and topics are those of the tests for Arrow.
__all__ = ["bootstrap", "cluster", "embedded", "make_topic_with_retention"]

_HERE = Path(__file__).parent
# Settings that make a session small; what a user gets otherwise is what is tested.
SMALL = {
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_spark_tests(items, _HERE)


def mark_spark_tests(items: list[pytest.Item], folder: Path) -> None:
    """Those below the folder that use a session."""
    for item in items:
        if folder in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.java)
            item.add_marker(pytest.mark.slow)
            for category in ("ResourceWarning", "DeprecationWarning", "FutureWarning", "UserWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{category}"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    require("java", "Spark needs Java 17")
    from millstream import spark as millstream_spark

    warehouse = str(tmp_path_factory.mktemp("spark") / "warehouse")
    session = millstream_spark.session(
        "local[2]", settings={**SMALL, "spark.sql.warehouse.dir": warehouse}, log_level="ERROR"
    )
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def active_session(request: pytest.FixtureRequest) -> None:
    """Spark finds data sources by the active session of the JVM's thread; Py4J may have given this thread a new one."""
    if "spark" in request.fixturenames:
        session = request.getfixturevalue("spark")
        session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)


@pytest.fixture
def make_topic(make_topic_with_retention: Callable[..., str]) -> Callable[..., str]:
    """Makes topics that keep records of 1970 too: brokers look for expired ones whenever they like."""

    def make(partitions: int = 1, suffix: str = "") -> str:
        return make_topic_with_retention(partitions, suffix, retention_ms="-1")

    return make


@pytest.fixture
def load(spark: SparkSession, bootstrap: str) -> Callable[..., DataFrame]:
    """A batch read with these options, an underscore for a dot in their names; JSON is made of what is no text."""

    def loaded(**options: object) -> DataFrame:
        reader = spark.read.format("millstream").option("kafka.bootstrap.servers", bootstrap)
        return reader.options(**_texts(options)).load()

    return loaded


@pytest.fixture
def load_stream(spark: SparkSession, bootstrap: str) -> Callable[..., DataFrame]:
    """The same as a stream, from the earliest offset unless told otherwise."""

    def loaded(**options: object) -> DataFrame:
        reader = spark.readStream.format("millstream").option("kafka.bootstrap.servers", bootstrap)
        return reader.options(**_texts({"startingOffsets": "earliest", **options})).load()

    return loaded


def _texts(options: dict[str, object]) -> dict[str, str]:
    return {
        name.replace("_", "."): value if isinstance(value, str) else json.dumps(value)
        for name, value in options.items()
    }
