"""A driver on a cluster: exactly-once copies whose writer tasks meet accidents that only a cluster has.

    python standalone_accidents.py <master> <source> <target> <folder>=<bootstrap servers> ...

One copy after the other, on each of these brokers, in one Spark. Each has a folder, whose files are the accidents to
come, one for each try of a batch, and the task that takes one away causes it:
    slow    waits until Spark has started a speculative copy of it
    fails   raises after it has written, in a cluster that speculates
    stage   kills the other executor and the shuffle files there, when it has seen a part of its rows: Spark runs the
            stage again, with the task as a first attempt, though the brokers have rows of it already
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream import arrow
from millstream import spark as millstream_spark
from millstream.spark import exactly_once_routing
from millstream.spark.exactly_once_task import WriteTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

ACCIDENTS = ("slow", "fails", "stage")
AT_ONCE = 300
PATIENCE_S = 120
# Larger than what fits between the JVM and its Python, so that a task reads the shuffle while it writes.
PADDING = b"x" * 10_000
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    # Half a minute, the default, is short on a busy machine: the job would begin with one executor.
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "240s",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
    # One block after the other, and no patience with an executor that is gone.
    "spark.reducer.maxReqsInFlight": "1",
    "spark.reducer.maxBlocksInFlightPerAddress": "1",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
}
SPECULATING = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.05",
    "spark.speculation.minTaskRuntime": "1s",
}


def troubled(folder: Path, accidents: list[str]) -> Callable[..., Any]:
    """Makes writer tasks; the first one of a try meets what comes next."""

    def make(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        task = WriteTask(*args, **kwargs)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            note = folder / f"met-in-{context.stageId()}"
            if context.attemptNumber() > 0 and note.exists():
                (folder / f"copied-{note.read_text()}").touch()
            elif context.attemptNumber() == 0 and context.partitionId() == 0:
                accident = next((name for name in accidents if taken(folder / name)), "")
                note.write_text(accident)
                batches = met(accident, batches, folder, context.stageId())
            yield from task(batches)

        return write

    return make


def met(accident: str, batches: Iterator[pa.RecordBatch], folder: Path, stage: int) -> Iterator[pa.RecordBatch]:
    """A task's rows, with the accident at its moment."""
    if accident == "slow":
        wait_for(folder / "copied-slow")
        yield from batches
    if accident == "fails":
        yield from batches
        # Asked for more: all but the last rows are written, or under way.
        raise RuntimeError("fails once, after it has written")
    if accident == "stage":
        yield from after_the_other(batches, folder, stage)
    if not accident:
        yield from batches


def after_the_other(batches: Iterator[pa.RecordBatch], folder: Path, stage: int) -> Iterator[pa.RecordBatch]:
    """Waits until the other task is done, and kills where it was: its records are written, its shuffle files gone."""
    yield next(batches)
    wait_for(folder / f"one-done-{stage}")
    kill_other_executors()
    yield from batches


def taken(file: Path) -> bool:
    try:
        file.unlink()
    except OSError:
        return False
    return True


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not file.exists():
        assert time.monotonic() < deadline, f"{file.name} did not happen"
        time.sleep(0.05)


def kill_other_executors() -> None:
    """Those of the same driver; this task's own is an ancestor of this process."""
    mine, url = own_executor()
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != mine and executor_of(process) == url:
            os.kill(int(process.name), signal.SIGKILL)


def own_executor() -> tuple[int, str]:
    process = os.getpid()
    while (url := executor_of(Path("/proc") / str(process))) is None:
        process = int((Path("/proc") / str(process) / "stat").read_text().rpartition(") ")[2].split()[1])
    return process, url


def executor_of(process: Path) -> str | None:
    """The driver's address, if this is an executor."""
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    is_executor = any(word.endswith("CoarseGrainedExecutorBackend") for word in words)
    return words[words.index("--driver-url") + 1] if is_executor and "--driver-url" in words else None


def report_tasks_done(spark: SparkSession, folder: Path) -> None:
    """For tasks that wait for each other: only the driver knows what it has been told."""

    def look() -> None:
        tracker = spark.sparkContext.statusTracker()
        while True:
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None and info.numTasks == 2 and info.numCompletedTasks == 1:
                    (folder / f"one-done-{stage}").touch()
            time.sleep(0.05)

    threading.Thread(target=look, daemon=True).start()


def wait_for_executors(spark: SparkSession) -> None:
    """Both of them: the one that an accident has killed is started again."""
    deadline = time.monotonic() + PATIENCE_S
    # The driver is in the list, too.
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:  # type: ignore[union-attr]
        assert time.monotonic() < deadline, "an executor does not come back"
        time.sleep(0.1)


def feed(servers: str, topic: str, first: int) -> None:
    values = [b"%05d" % number for number in range(first, first + 2 * AT_ONCE)]
    arrow.write(servers, topic, pa.table({"key": values, "value": [value + PADDING for value in values]}))


def copy(spark: SparkSession, servers: str, source: str, target: str, checkpoint: str) -> None:
    rows = (
        spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(AT_ONCE))
        .option("minPartitions", "12")
        .load()
        .select("key", "value")
    )
    millstream_spark.start(
        rows, servers=servers, topic=target, checkpoint=checkpoint, trigger="available_now"
    ).awaitTermination()


def main() -> None:
    master, source, target, *places = sys.argv[1:]
    brokers = {Path(folder): servers for folder, _, servers in (place.partition("=") for place in places)}
    # What the sink says of batches that it tries again is for the test to see.
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING)
    routing: Any = exactly_once_routing
    spark = millstream_spark.session(master, settings={**SETTINGS, **SPECULATING}, log_level="OFF")
    for folder, servers in brokers.items():
        routing.WriteTask = troubled(folder, ["slow", "fails"])
        feed(servers, source, 0)
        copy(spark, servers, source, target, f"{folder}/checkpoint")
    spark.stop()
    # Said, since the JVM remembers what it was started with.
    spark = millstream_spark.session(master, settings={**SETTINGS, "spark.speculation": "false"}, log_level="OFF")
    for folder, servers in brokers.items():
        wait_for_executors(spark)
        routing.WriteTask = troubled(folder, ["stage"])
        feed(servers, source, 2 * AT_ONCE)
        report_tasks_done(spark, folder)
        copy(spark, servers, source, target, f"{folder}/checkpoint")
    print(
        json.dumps(
            {"left": [str(folder / name) for folder in brokers for name in ACCIDENTS if (folder / name).exists()]}
        )
    )
    spark.stop()


if __name__ == "__main__":
    main()
