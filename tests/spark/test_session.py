"""Starting Spark: what is said where it cannot start, and what the session has when it did."""

from __future__ import annotations

import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from millstream.spark.java import NoJava, check_java

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def fake_java(home: Path, says: str) -> None:
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)


def test_a_missing_java_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoJava, match="Spark needs Java 17 or newer, and there is none"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava, match="where there is no bin/java"):
        check_java()


@pytest.mark.parametrize(
    ("says", "version"), [('java version "1.8.0_392"', 8), ('openjdk version "11.0.2"', 11), ("what?", None)]
)
def test_an_old_java_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, version: int | None
) -> None:
    fake_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava, match="does not say its version" if version is None else f"is Java {version}"):
        check_java()


def test_java_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path, 'openjdk version "21.0.1" 2023-10-17')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_java() == 21


def test_the_session_is_set_up_for_topics(spark: SparkSession) -> None:
    from millstream import spark as millstream_spark

    assert millstream_spark.session() is spark, "a session that runs is taken"
    assert spark.sparkContext.pythonExec == sys.executable
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    class_name = spark.conf.get("spark.sql.streaming.checkpointFileManagerClass")
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    assert jvm.java.lang.Class.forName(class_name) is not None
    assert "RocksDB" in str(spark.conf.get("spark.sql.streaming.stateStore.providerClass"))
    # RocksDB's state store works with the checked file system only.
    assert "RawLocalFileSystem" not in str(spark.sparkContext.getConf().get("spark.hadoop.fs.file.impl", ""))


def test_settings_that_come_too_late_are_named(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    from millstream import spark as millstream_spark

    millstream_spark.session(settings={"spark.sql.shuffle.partitions": "2"})
    assert "do not reach it" not in caplog.text
    millstream_spark.session(settings={"spark.executor.memory": "9g", "spark.sql.shuffle.partitions": "2"})
    assert "these settings do not reach it: spark.executor.memory" in caplog.text


def test_another_thread_gets_the_session_that_runs_and_changes_nothing(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    from millstream import spark as millstream_spark

    settings = {"spark.sql.shuffle.partitions": "7"}
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(millstream_spark.session, "local[2]", settings=settings).result()
    assert found is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert "these settings do not reach it: spark.sql.shuffle.partitions" in caplog.text
