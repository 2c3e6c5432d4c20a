"""Runs in a fresh interpreter, as a new Python worker does: from nothing to the first decoded batch.

python worker_start.py <bootstrap servers> <topic>

PySpark's worker has imported PySpark before it is given a task, so its time starts with ours; what a source needs of
PySpark it has. Prints the milliseconds, and the modules that should have stayed out.
"""

from __future__ import annotations

import json
import sys
import time

import pyspark.sql.datasource
import pyspark.sql.types  # noqa: F401

HEAVY = ("pandas", "pyspark.pandas", "millstream.broker", "millstream.log", "millstream.arrow.writer")


def main() -> None:
    servers, topic = sys.argv[1:]
    before = set(sys.modules)
    start = time.perf_counter()
    from millstream.spark.source import MillstreamDataSource

    source = MillstreamDataSource({"kafka.bootstrap.servers": servers, "subscribe": topic})
    reader = source.reader(source.schema())
    first = next(iter(reader.read(reader.partitions()[0])))
    took_ms = (time.perf_counter() - start) * 1000
    loaded = [name for name in HEAVY if name in sys.modules and name not in before]
    print(json.dumps({"ms": took_ms, "rows": first.num_rows, "heavy": loaded}))


if __name__ == "__main__":
    main()
