"""A driver program for test_exactly_once_kills.py: exactly-once copies that kill this very driver at a given step.

    python -m tests.spark.exactly_once_driver '{"copies": [...], "die": {"copy": 0, "step": "written", "batch": 1}}'

It ends with 0 when all copies have caught up. `kill -9` takes the JVM along, as it would where a driver's machine dies;
the Python workers then end by themselves.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import millstream.spark
from millstream.spark import exactly_once_routing, exactly_once_sink
from millstream.spark.exactly_once_routing import Layout
from millstream.spark.exactly_once_task import WriteTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

STEPS = ("begun", "written", "offsets", "ending", "ended")
MOMENTS = ("before", "amid", "after")


def _dies_at(flag: Path, moment: str) -> None:
    """Kill this process if the file names the moment; the file goes with it, so it happens once."""
    try:
        if flag.read_text() != moment:
            return
        flag.unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def dying(flag: Path) -> Callable[..., Any]:
    """Writer tasks of which one dies at the moment that a file names."""

    def make(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        task = WriteTask(*args, **kwargs)

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch
                # Asked for more: these rows are on their way.
                _dies_at(flag, "amid")

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            _dies_at(flag, "before")
            written = list(task(rows(batches)))
            _dies_at(flag, "after")
            yield from written

        return write

    return make


def pausing(written: Path, restarted: Path) -> Callable[..., Any]:
    """Writer tasks of which one stops once, when it has written some of its rows, until it is told to go on."""

    def make(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        task = WriteTask(*args, **kwargs)

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(batches):
                yield batch
                if number == 1 and not written.exists():
                    written.touch()
                    deadline = time.monotonic() + 300
                    while not restarted.exists() and time.monotonic() < deadline:
                        time.sleep(0.05)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return task(rows(batches))

        return write

    return make


def die(step: str) -> NoReturn:
    print(f"dies at {step}", flush=True)
    os.killpg(os.getpgid(0), signal.SIGKILL)
    raise AssertionError("still alive")


class Trap:
    """Counts the batches of one copy, and springs at a step of one of them."""

    def __init__(self, topic: str, step: str, batch: int) -> None:
        self.topic = topic
        self.step = step
        self.batch = batch
        self.here = False

    def after(self, step: str, call: Callable[..., Any]) -> Callable[..., Any]:
        async def called(client: Any, *args: Any, **kwargs: Any) -> Any:
            if step == "ended" and self.here and self.step == "ending":
                import asyncio

                # The request leaves; nobody waits for the answer.
                under_way = asyncio.ensure_future(call(client, *args, **kwargs))
                await asyncio.sleep(0.001)
                die(self.step)
                return await under_way
            result = await call(client, *args, **kwargs)
            if self.here and self.step == step:
                die(step)
            return result

        return called

    def set(self) -> None:
        sink: Any = exactly_once_sink
        sink.begin = self.after("begun", sink.begin)
        sink.commit_offsets_in = self.after("offsets", sink.commit_offsets_in)
        sink.end_transaction = self.after("ended", sink.end_transaction)
        write, call = Layout.write, exactly_once_sink.Sink.__call__

        def written(layout: Layout, *args: Any) -> Any:
            result = write(layout, *args)
            if self.here and self.step == "written":
                die("written")
            return result

        def called(this: Any, batch: Any, batch_id: int) -> None:
            # The copies take turns while the trap is set, or it would spring for the wrong one.
            self.here = this._layout.topic == self.topic and batch_id >= self.batch
            call(this, batch, batch_id)

        Layout.write = written  # type: ignore[method-assign]
        exactly_once_sink.Sink.__call__ = called  # type: ignore[method-assign]


def start_copy(spark: SparkSession, copy: dict[str, str]) -> Any:
    rows = (
        spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", copy["servers"])
        .option("subscribe", copy["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", copy["at_once"])
        .load()
        .select("key", "value")
    )
    if copy["output_mode"] == "update":
        # How often each key has come so far: state that Spark has to bring through the kill, too.
        rows = rows.groupBy("key").count().selectExpr("key", "cast(count as string) as value")
    return millstream.spark.start(
        rows,
        servers=copy["servers"],
        topic=copy["target"],
        checkpoint=copy["checkpoint"],
        output_mode=copy["output_mode"],  # type: ignore[arg-type]  # one of the two
        trigger="available_now",
    )


def main() -> None:
    plan = json.loads(sys.argv[1])
    # What the sink says of batches that it tries again is for the test to see.
    logging.basicConfig(stream=sys.stdout, level=logging.WARNING)
    spark = millstream.spark.session(
        plan.get("master", "local[2]"),
        settings={"spark.ui.enabled": "false", "spark.driver.memory": "512m"},
        log_level="ERROR",
    )
    trap = plan.get("die")
    if trap is not None:
        Trap(plan["copies"][trap["copy"]]["target"], trap["step"], trap["batch"]).set()
    if "flag" in plan:
        routing: Any = exactly_once_routing
        routing.WriteTask = dying(Path(plan["flag"]))
    for copy in plan["copies"]:
        start_copy(spark, copy).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
