"""A SparkSession that is set up for topics: the data source registered, latencies as low as they were measured to be.

What was measured (docs/spark.md has the figures): Spark's default way to write checkpoints to a local disk starts child
processes, and costs more than the rest of a small batch; 200 shuffle partitions on two cores cost another second; the
default state store rewrites what RocksDB appends; batches between Java and Python cost a tenth less processor time
through Unix sockets than through TCP. Every setting can be overridden. How checkpoints are written is set for local
masters only: another cluster's file system may need what Spark does by default.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Final

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from millstream.spark.java import check_java
from millstream.spark.masters import local_cores
from millstream.spark.source import MillstreamDataSource

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOG: Final = logging.getLogger("millstream.spark")
_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_EVERYWHERE: Final = {
    "spark.python.unix.domain.socket.enabled": str(sys.platform != "win32").lower(),
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    "spark.ui.showConsoleProgress": "false",
    # A worker's first import on a busy machine takes longer than Spark's 15 seconds.
    "spark.python.authenticate.socketTimeout": "120s",
}
# Where everything is on this machine: its disk, and nothing that depends on how the machine's name resolves.
_LOCAL: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

# With one of these, spark-submit or the environment has said where to run.
_SUBMITTED: Final = {"PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "MASTER"}


def session(
    master: str | None = None,
    *,
    name: str = "millstream",
    settings: Mapping[str, str] | None = None,
    log_level: str | None = None,
) -> SparkSession:
    """Start Spark, or take the session that runs, and register the data source.

    `master` is Spark's: local[2], spark://host:7077, yarn ...; without one, what the environment says (spark-submit),
    or all cores of this machine. `settings` are Spark's too, and win over those made here; a session that runs is not
    changed by them, which is said in the log.
    """
    running = _running()
    if running is not None:
        _warn_of_what_is_too_late(running, settings or {})
        return register(running)
    check_java()
    if master is None and not os.environ.keys() & _SUBMITTED:
        master = "local[*]"
    # Workers must have the same packages; on another machine the user knows better, and has set it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    wanted = {**_EVERYWHERE, **_for_master(master), **(settings or {})}
    if master is not None:
        builder = builder.master(master)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if local_cores(master) is not None:
        _leave_out_checksums(spark)
    if log_level is not None:
        spark.sparkContext.setLogLevel(log_level)
    return register(spark)


def _running() -> SparkSession | None:
    """This thread's session, or the one that other threads have started: a builder would change its settings."""
    try:
        found = SparkSession.active()
    except PySparkRuntimeError:
        return None
    # A context that was stopped without its session leaves it behind.
    return None if not _is_remote(found) and SparkContext._active_spark_context is None else found


def _is_remote(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _warn_of_what_is_too_late(running: SparkSession, settings: Mapping[str, str]) -> None:
    other = [name for name, value in settings.items() if running.conf.get(name, None) != str(value)]
    if other:
        _LOG.warning("a session runs already, and these settings do not reach it: %s", ", ".join(sorted(other)))


def register(spark: SparkSession) -> SparkSession:
    """Make `format("millstream")` known to a session that somebody else has made."""
    if not _is_remote(spark):
        _open_wheels(spark)
    spark.dataSource.register(MillstreamDataSource)
    return spark


def _open_wheels(spark: SparkSession) -> None:
    """Spark sends a wheel of `--py-files` to the executors, but has Python look into .zip, .egg and .jar only."""
    context = spark.sparkContext
    opened = context._python_includes
    assert opened is not None, "the context runs"
    for path in context.getConf().get("spark.submit.pyFiles", "").split(","):
        name = os.path.basename(path)
        if name.endswith(".whl") and name not in opened:
            opened.append(name)


def _leave_out_checksums(spark: SparkSession) -> None:
    """A `.crc` file beside each small file of a checkpoint doubles the work.

    Hadoop's raw file system would leave them out too, but RocksDB's state store casts what it is given to the other.
    """
    jvm = spark._jvm
    assert jvm is not None, "a session of this process has a JVM"
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration()).setWriteChecksum(False)


def _for_master(master: str | None) -> dict[str, str]:
    cores = local_cores(master)
    return {} if cores is None else {**_LOCAL, "spark.sql.shuffle.partitions": str(max(cores, 2))}
