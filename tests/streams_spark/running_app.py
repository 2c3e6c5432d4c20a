"""An application in a process of its own, for tests that kill what it runs on.

    python -m tests.streams_spark.running_app <master> <bootstrap servers> <name> <folder> <settings as JSON> [chained]

Columns in Spark's own operators and Python functions, both with state. It runs until the folder has a file `stop`.
Other files there are accidents to come; who takes one away causes it, by `kill -9`:

    executor-wrote     of the executor whose task has just written its part of a micro-batch
    executor-works     of the executor whose Python worker is in the middle of a Python function
    driver-wrote       of the driver, when all is written that comes of an internal topic, and the transaction is open
    driver-committed   of the driver, when the transaction is committed and Spark does not know yet
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream import spark as millstream_spark
from millstream.spark import exactly_once_routing, exactly_once_sink
from millstream.spark.exactly_once_task import WriteTask
from millstream.streams import Application, StreamsBuilder, Topology, concat, key, session, tumbling, value
from tests.spark.standalone_accidents import own_executor, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

COUNTED, REDUCED = "counted", "reduced"
INPUTS = (COUNTED, REDUCED)
OUTPUTS = ("windows", "texts", "sessions")
PEEKED = "peeked"
_LOOK_S = 0.1
_SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # A third executor may come; two are enough to begin with.
    "spark.cores.max": "3",
    "spark.scheduler.minRegisteredResourcesRatio": "0.6",
    # No patience with executors that are gone.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
}


def topology_of(name: str, folder: Path | None = None, *, chained: bool = False) -> Topology:
    """Without a folder there are no accidents. With `chained` there is one more count, behind an internal topic."""

    def reduced(one: str, other: str) -> str:
        if folder is not None and taken(folder / "executor-works"):
            kill_own_executor()
        return (one + other)[-6:]

    def peeked(_key: str, _value: str) -> None:
        if folder is not None:
            with (folder / PEEKED).open("a") as lines:
                lines.write("x")

    builder = StreamsBuilder(key=str, value=str)
    counted = builder.stream(f"{name}-{COUNTED}")
    windows = counted.group_by_key().windowed_by(tumbling(10, grace_ms=15)).count(store="windows")
    windows.to_stream().to(f"{name}-windows")
    if chained:
        counted.group_by(concat(key(), "/", value())).count(store="pairs").to_stream().to(f"{name}-pairs")
    grouped = builder.stream(f"{name}-{REDUCED}").peek(peeked).group_by_key()
    grouped.reduce(reduced).to_stream().to(f"{name}-texts")
    grouped.windowed_by(session(5, grace_ms=8)).count().to_stream().to(f"{name}-sessions")
    return builder.build()


def kill_own_executor() -> None:
    process, _ = own_executor()
    os.kill(process, signal.SIGKILL)


def writing(folder: Path) -> Callable[..., Any]:
    """Writer tasks of which one loses its executor before it could say what it wrote."""

    def make(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        task = WriteTask(*args, **kwargs)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            written = list(task(batches))
            if any(batch.num_rows for batch in written) and taken(folder / "executor-wrote"):
                kill_own_executor()
            yield from written

        return write

    return make


def dying_before(file: Path, call: Callable[..., Any]) -> Callable[..., Any]:
    """Offsets in an internal topic are to be stored, and the driver dies, with its JVM, as if its machine did."""

    async def called(*args: Any, **kwargs: Any) -> Any:
        if any(topic.endswith("-repartition") for topic, _ in args[-1]) and taken(file):
            os.killpg(os.getpgid(0), signal.SIGKILL)
        return await call(*args, **kwargs)

    return called


def dying_after(file: Path, call: Callable[..., Any]) -> Callable[..., Any]:
    """The same when a step is done."""

    async def called(*args: Any, **kwargs: Any) -> Any:
        result = await call(*args, **kwargs)
        if taken(file):
            os.killpg(os.getpgid(0), signal.SIGKILL)
        return result

    return called


def set_traps(folder: Path) -> None:
    routing: Any = exactly_once_routing
    sink: Any = exactly_once_sink
    routing.WriteTask = writing(folder)
    sink.commit_offsets_in = dying_before(folder / "driver-wrote", sink.commit_offsets_in)
    sink.end_transaction = dying_after(folder / "driver-committed", sink.end_transaction)


def main() -> None:
    master, servers, name, given, more, *chained = sys.argv[1:]
    folder = Path(given)
    # What the sink says of batches that it tries again is for whoever reads the log.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    set_traps(folder)
    spark = millstream_spark.session(master, settings=_SETTINGS, log_level="OFF")
    settings = {"state.dir": folder / "state", **json.loads(more)}
    app = Application(
        topology_of(name, folder, chained=bool(chained)), name, bootstrap_servers=servers, settings=settings
    )
    with app.start(spark):
        while not (folder / "stop").exists():
            assert not app.wait(_LOOK_S), "the application has ended"
    print(json.dumps(app.engines()))
    spark.stop()


if __name__ == "__main__":
    main()
