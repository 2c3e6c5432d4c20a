"""What the scripts share that run inside a Spark environment: the session, and the calls, which come as lines of JSON.

    python <script> <millstream | kafka> <bootstrap servers> <jars, comma separated> <scratch folder>

For `kafka` the interpreter has PySpark 4.0.0 with Spark's own connector and nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

connector, servers, jars, scratch = sys.argv[1:]
_SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": f"{scratch}/warehouse",
    "spark.ui.enabled": "false",
}


def start_session() -> SparkSession:
    """Ours as a user gets it; Spark's own with its defaults."""
    if connector == "millstream":
        import millstream.spark

        return millstream.spark.session("local[2]", settings=_SETTINGS, log_level="ERROR")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**_SETTINGS, "spark.driver.extraClassPath": jars.replace(",", ":")}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
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
