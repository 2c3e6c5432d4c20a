"""A driver program for test_exactly_once_kills.py: exactly-once copies that kill this very driver at given steps.

    python -m tests.spark.exactly_once_driver '{"copies": [...], "die": [["written", 1], ["ended", 4]]}'

`die` has a step and a first batch for each copy. Without it the program ends with 0 when all copies have caught up.
`kill -9` takes the JVM along, as it would where a driver's machine dies; the Python workers then end by themselves.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import millstream.spark
from millstream.spark import exactly_once_routing, exactly_once_sink
from millstream.spark.exactly_once_routing import Layout
from millstream.spark.exactly_once_task import WriteTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

STEPS = ("begun", "written", "between", "offsets", "ending", "ended")
MOMENTS = ("before", "amid", "after")
PATIENCE_S = 300


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
                    deadline = time.monotonic() + PATIENCE_S
                    while not restarted.exists() and time.monotonic() < deadline:
                        time.sleep(0.05)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return task(rows(batches))

        return write

    return make


class Traps:
    """Has the driver die when each of these copies is at its step: whoever comes first waits for the others."""

    def __init__(self, steps: Mapping[str, tuple[str, int]]) -> None:
        """By a copy's checkpoint: a step, and the first batch that is to come no further."""
        self._steps = steps
        # By the transactional id, where its batch is to end.
        self._armed: dict[str, str] = {}
        self._all_came = threading.Barrier(len(steps))
        # Who kills: a request that must have left, and not been answered, leaves no time to others.
        self._killing = min((step for step, _ in steps.values()), key=lambda step: step != "ending")

    def die_at(self, transactional_id: str, step: str) -> None:
        if self._armed.get(transactional_id) == step:
            self._wait_for_all(step)
            die()

    def _wait_for_all(self, step: str) -> None:
        print(f"dies at {step}", flush=True)
        self._all_came.wait(PATIENCE_S)
        if step != self._killing:
            time.sleep(PATIENCE_S)

    def begun(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def called(client: Any, transactional_id: str, *args: Any) -> Any:
            result = await call(client, transactional_id, *args)
            self.die_at(transactional_id, "begun")
            return result

        return called

    def committed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Offsets go to the group that people know, and then to the query's own."""

        async def called(client: Any, transaction: Any, group: str, *args: Any) -> None:
            await call(client, transaction, group, *args)
            self.die_at(transaction.id, "offsets" if group == transaction.id else "between")

        return called

    def ended(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def called(client: Any, transaction: Any, **kwargs: Any) -> Any:
            if self._armed.get(transaction.id) == "ending":
                self._wait_for_all("ending")
                # The request leaves; nobody waits for the answer.
                under_way = asyncio.ensure_future(call(client, transaction, **kwargs))
                await asyncio.sleep(0.001)
                die()
                return await under_way
            result = await call(client, transaction, **kwargs)
            self.die_at(transaction.id, "ended")
            return result

        return called

    def set(self) -> None:
        sink, layouts = cast("Any", exactly_once_sink), cast("Any", Layout)
        sink.begin = self.begun(sink.begin)
        sink.commit_offsets_in = self.committed(sink.commit_offsets_in)
        sink.end_transaction = self.ended(sink.end_transaction)
        write_rows, write_batch = layouts.write, sink.Sink._write

        def written(layout: Layout, batch: Any, client: Any, transaction: Any, batch_id: int) -> Any:
            result = write_rows(layout, batch, client, transaction, batch_id)
            self.die_at(transaction.id, "written")
            return result

        def armed(this: Any, batch: Any, batch_id: int, *args: Any, **kwargs: Any) -> None:
            step, first = self._steps[this._location]
            if batch_id >= first:
                self._armed[this._query_id] = step
            write_batch(this, batch, batch_id, *args, **kwargs)

        layouts.write, sink.Sink._write = written, armed


def die() -> NoReturn:
    os.killpg(os.getpgid(0), signal.SIGKILL)
    raise AssertionError("still alive")


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
        group=copy["group"],
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
    if "die" in plan:
        Traps({copy["checkpoint"]: trap for copy, trap in zip(plan["copies"], plan["die"], strict=True)}).set()
    if "flag" in plan:
        routing: Any = exactly_once_routing
        routing.WriteTask = dying(Path(plan["flag"]))
    for query in [start_copy(spark, copy) for copy in plan["copies"]]:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
