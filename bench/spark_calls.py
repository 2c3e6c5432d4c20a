"""What the scripts share that run inside a Spark environment: the session, and the calls, which come as lines of JSON.

    python <script> <millstream | kafka | kafka-by-default> <bootstrap servers> <jars, comma separated> <scratch folder>

For `kafka` the interpreter has PySpark 4.0.0 with Spark's own connector and nothing of ours; its session gets what
`millstream.spark.session` sets and Spark 4.0.0 knows. `kafka-by-default` leaves Spark as it is.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_wanted, servers, jars, scratch = sys.argv[1:]
connector, _, _by_default = _wanted.partition("-")
# Where it runs; nothing of it makes a query faster.
_SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.warehouse.dir": f"{scratch}/warehouse",
    "spark.ui.enabled": "false",
}
_STREAMING = "org.apache.spark.sql.execution.streaming"
# src/millstream/spark/sessions.py for a master of two cores; Spark 4.0 has one of the classes in another package.
_AS_OURS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.authenticate.socketTimeout": "120s",
    "spark.sql.streaming.checkpointFileManagerClass": f"{_STREAMING}.FileSystemBasedCheckpointFileManager",
    "spark.sql.shuffle.partitions": "2",
}


def start_session() -> SparkSession:
    """Ours as a user gets it; Spark's own with the same settings, or with none."""
    if connector == "millstream":
        import millstream.spark

        return millstream.spark.session("local[2]", settings=_SETTINGS, log_level="ERROR")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    settings = _SETTINGS if _by_default else _SETTINGS | _AS_OURS
    for name, value in {**settings, "spark.driver.extraClassPath": jars.replace(",", ":")}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if not _by_default:
        # As ours on a local disk: a `.crc` file beside each small file of a checkpoint doubles the work.
        hadoop = spark._jvm.org.apache.hadoop.fs.FileSystem
        hadoop.getLocal(spark._jsc.hadoopConfiguration()).setWriteChecksum(False)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def serve(calls: Mapping[str, Callable[..., Any]]) -> None:
    """Answer each call with one line, until there are no more."""
    for line in sys.stdin:
        call = json.loads(line)
        try:
            answer = {"ok": calls[call.pop("call")](**call)}
        except Exception as failure:  # noqa: BLE001  # whatever Spark raises is the caller's to judge
            answer = {"failed": str(failure)[:4000]}
        print(json.dumps(answer), flush=True)
