"""A source whose Python comes up too late for Spark, really: the query is started again and copies everything.

Only Millstream's broker: who serves the topics makes no difference to how Spark starts a process.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream import arrow
from millstream.spark.exactly_once import start
from millstream.spark.source import MillstreamDataSource

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

    from tests.arrow.conftest import Embedded

# The first source to come is slower than Spark's ten seconds; its process is no use to anybody then.
LATE_PYTHON = """#!/bin/sh
case "$*" in
  *python_streaming_source_runner*) if mkdir '{mark}' 2>/dev/null; then exec sleep 12; fi ;;
esac
exec '{python}' "$@"
"""


class Late(MillstreamDataSource):
    """The same under a name of its own: Spark notes which Python to use when a source is registered."""

    @classmethod
    def name(cls) -> str:
        return "late"


def test_a_query_whose_source_is_late_is_started_again(
    spark: SparkSession,
    embedded: Embedded,
    fresh_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    python, mark = tmp_path / "python", tmp_path / "was late"
    python.write_text(LATE_PYTHON.format(mark=mark, python=sys.executable))
    python.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(spark.sparkContext, "pythonExec", str(python))
        spark.dataSource.register(Late)
    servers, target = embedded.bootstrap_servers, f"{fresh_name}-copy"
    arrow.write(servers, fresh_name, pa.table({"value": [b"a", b"b"]}))
    rows = (
        spark.readStream.format("late")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", fresh_name)
        .option("startingOffsets", "earliest")
        .load()
        .select("value")
    )
    spark.streams.resetTerminated()
    with caplog.at_level(logging.WARNING, logger="millstream.spark"):
        query = start(
            rows, servers=servers, topic=target, checkpoint=tmp_path / "copy", trigger="available_now", name=fresh_name
        )
        query.awaitTermination()
    assert spark.streams.awaitAnyTermination(1), "it raises nothing: what failed is not what was started"
    assert mark.exists()
    assert [record.message for record in caplog.records if "is started again" in record.message]
    assert sorted(arrow.read(servers, target, columns=["value"])["value"].to_pylist()) == [b"a", b"b"]
