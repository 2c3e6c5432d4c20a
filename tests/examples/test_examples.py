"""Every example runs, on one Spark session and a broker of its own, and comes to the right result.

The broker is Millstream embedded, as when an example is run as a program; one of them runs on Apache Kafka as well.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from millstream import Broker
from tests.spark.conftest import spark
from tests.support.requirements import PROJECT_ROOT, require

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["spark"]

EXAMPLES = PROJECT_ROOT / "examples"
APACHE_KAFKA = "apache-kafka"
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


@pytest.fixture
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    """A broker for each example: they choose their topics' names freely."""
    if getattr(request, "param", "") == APACHE_KAFKA:
        # Shared, so that only one example may run there.
        yield request.getfixturevalue("apache_kafka").bootstrap_servers
        return
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def utc(spark: SparkSession) -> Iterator[SparkSession]:
    """The examples with times say so themselves when they start a session."""
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


class TestWithSpark:
    pytestmark = with_spark

    def test_word_count(self, spark: SparkSession, servers: str) -> None:
        totals = example("word_count").run(spark, servers)
        assert totals["the"] == 5
        assert totals["mill"] == 3
        assert sum(totals.values()) == 24

    def test_etl_to_parquet(self, utc: SparkSession, servers: str, tmp_path: Path) -> None:
        days, reasons = example("etl_to_parquet").run(utc, servers, tmp_path)
        assert days == {"2026-03-01": 100, "2026-03-02": 100, "2026-03-03": 100}
        assert sorted(reasons) == [
            "the value does not fit the schema struct<order:bigint,euros:double>",
            "the value is not JSON",
        ]

    @pytest.mark.parametrize("servers", ["millstream", APACHE_KAFKA], indirect=True)
    def test_exactly_once_copy(self, spark: SparkSession, servers: str) -> None:
        same, _group, offsets = example("exactly_once_copy").run(spark, servers)
        assert same
        assert sum(offsets.values()) == 50_000

    def test_log_aggregation(self, utc: SparkSession, servers: str) -> None:
        errors = example("log_aggregation").run(utc, servers)
        assert errors == {
            ("12:00", "checkout"): 2,
            ("12:00", "search"): 2,
            ("12:00", "mail"): 2,
            ("12:01", "checkout"): 6,
            ("12:02", "checkout"): 6,
        }

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


def test_topic_to_frames(servers: str) -> None:
    module = example("topic_to_frames")
    module.feed(servers)
    expected = {"Amsterdam": 24_500, "Berlin": 24_500, "Cork": 24_500}
    assert module.with_polars(servers) == expected
    assert module.with_duckdb(servers) == expected
