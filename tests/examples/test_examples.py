"""Every example runs, on one Spark session, and comes to the right result.

On Millstream embedded, as when an example is run as a program, and on Apache Kafka; but the demo, which is Millstream's
own and starts it itself, and the streams (test_streams_on_spark.py), which do so too.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from millstream import Broker, arrow
from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_topics, delete_topics, list_topics
from millstream.client.sync import SyncClient
from tests.spark.conftest import spark
from tests.support.requirements import PROJECT_ROOT, require
from tests.support.topics import until_settled
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["spark"]

EXAMPLES = PROJECT_ROOT / "examples"
APACHE_KAFKA = "apache-kafka"
# Whose records have a time of their own: a broker that looks for expired ones, whenever it likes, would take them.
OF_LAST_MARCH = ("orders", "readings")
with_spark = [
    pytest.mark.java,
    pytest.mark.slow,
    # Spark and its bridge warn about their own sockets and deprecations.
    *(pytest.mark.filterwarnings(f"ignore::{each}Warning") for each in ("Resource", "Deprecation", "Future", "User")),
]


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


on_both = pytest.mark.parametrize(
    "servers", ["millstream", pytest.param(APACHE_KAFKA, marks=pytest.mark.java)], indirect=True
)


@pytest.fixture
def servers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A broker without topics that an example would know: they choose their names freely."""
    if request.param == APACHE_KAFKA:
        shared: str = request.getfixturevalue("apache_kafka").bootstrap_servers
        monkeypatch.setattr(arrow, "read", settled_read(arrow.read))
        with without_its_topics(shared):
            yield shared
        return
    with Broker() as broker:
        yield broker.bootstrap_servers


def settled_read(read: Callable[..., pa.Table]) -> Callable[..., pa.Table]:
    """Examples read what a query has just committed, and Apache Kafka's markers come a moment after its answer."""

    def patient(servers: str, topic: str, **how: Any) -> pa.Table:
        until_settled(servers, topic)
        return read(servers, topic, **how)

    return patient


@contextmanager
def without_its_topics(servers: str) -> Iterator[None]:
    """Others use this broker, too: whatever the example makes there is gone afterwards."""
    with SyncClient({"bootstrap.servers": servers}) as client:

        def topics() -> list[str]:
            return [topic.name for topic in client.run(list_topics)]

        before = topics()
        kept = [NewTopic(name, 1, 1, {"retention.ms": "-1"}) for name in OF_LAST_MARCH]
        raise_first(client.run(create_topics, kept))
        yield
        made = [topic for topic in topics() if topic not in before and not topic.startswith("__")]
        raise_first(client.run(delete_topics, made))
        wait_until(lambda: not set(made) & set(topics()), "its topics to be gone", within_s=120)


@pytest.fixture
def utc(spark: SparkSession) -> Iterator[SparkSession]:
    """The examples with times say so themselves when they start a session."""
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


class TestWithSpark:
    pytestmark = with_spark

    @on_both
    def test_word_count(self, spark: SparkSession, servers: str) -> None:
        totals = example("word_count").run(spark, servers)
        assert totals["the"] == 5
        assert totals["mill"] == 3
        assert sum(totals.values()) == 24

    @on_both
    def test_etl_to_parquet(self, utc: SparkSession, servers: str, tmp_path: Path) -> None:
        days, reasons = example("etl_to_parquet").run(utc, servers, tmp_path)
        assert days == {"2026-03-01": 100, "2026-03-02": 100, "2026-03-03": 100}
        assert sorted(reasons) == [
            "the value does not fit the schema struct<order:bigint,euros:double>",
            "the value is not JSON",
        ]

    @on_both
    def test_exactly_once_copy(self, spark: SparkSession, servers: str) -> None:
        same, _group, offsets = example("exactly_once_copy").run(spark, servers)
        assert same
        assert sum(offsets.values()) == 50_000

    @on_both
    def test_log_aggregation(self, utc: SparkSession, servers: str) -> None:
        errors = example("log_aggregation").run(utc, servers)
        assert errors == {
            ("12:00", "checkout"): 2,
            ("12:00", "search"): 2,
            ("12:00", "mail"): 2,
            ("12:01", "checkout"): 6,
            ("12:02", "checkout"): 6,
        }

    @on_both
    def test_sensor_alerts(self, utc: SparkSession, servers: str) -> None:
        alerts = example("sensor_alerts").run(utc, servers)
        assert {alert["sensor"] for alert in alerts} == {"boiler-2"}
        assert min(alert["until"] for alert in alerts) == "12:00:40"

    def test_demo(self) -> None:
        """As `make demo` runs it, but shorter; it checks its own sums."""
        require("java", "Spark needs Java 17")
        done = run_demo({})
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(" ok ") == 5
        assert "orders counted in windows" in done.stdout


def run_demo(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(PROJECT_ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py"), "--seconds", "5"],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_demo_says_in_one_sentence_that_java_is_missing(tmp_path: Path) -> None:
    done = run_demo({"JAVA_HOME": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr.strip().startswith("Spark needs Java 17 or newer")
    assert len(done.stderr.strip().splitlines()) == 1


@on_both
def test_topic_to_frames(servers: str) -> None:
    module = example("topic_to_frames")
    module.feed(servers)
    expected = {"Amsterdam": 24_500, "Berlin": 24_500, "Cork": 24_500}
    assert module.with_polars(servers) == expected
    assert module.with_duckdb(servers) == expected
