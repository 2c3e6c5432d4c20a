"""Exactly once under kill -9: of the driver, of Python workers and of the broker, at each step of a batch.

After each kill something must be amiss (a batch that is planned and not done, records that nobody may see yet), or the
kill would prove nothing. In the end the copy is compared with what went in, and so are the offsets in both groups: the
query's own and the one that people look at.

Brokers and workers are killed on Millstream and on Apache Kafka. A driver that starts costs many seconds, so it copies
on both at once, and dies when it is at one step here and at another there; with `--against both` each step is met on
each of them. MILLSTREAM_SPARK_ROUNDS goes through all of it several times (`make soak`).
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from millstream import arrow
from millstream.client.groups import committed_offsets
from millstream.client.sync import SyncClient
from millstream.spark import exactly_once_routing, exactly_once_sink
from millstream.spark.exactly_once import start
from millstream.spark.exactly_once_checkpoint import offsets_in
from tests.spark import exactly_once_driver
from tests.spark.exactly_once_driver import MOMENTS, STEPS, dying, pausing
from tests.support.own_broker import own_broker_of
from tests.support.requirements import PROJECT_ROOT, require
from tests.support.topics import create_topics, until_settled
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from tests.support.apache_kafka import ApacheKafka
    from tests.support.millstream_process import MillstreamProcess
    from tests.support.running import RunningBroker

ROUNDS = int(os.environ.get("MILLSTREAM_SPARK_ROUNDS", "1"))
AT_ONCE = 100
pytestmark = [pytest.mark.java, pytest.mark.slow]


class Copy:
    """A source, its copy, the checkpoint between them, and what went in."""

    output_mode = "append"

    def __init__(self, broker: RunningBroker, scratch: Path, name: str) -> None:
        self.broker = broker
        self.source, self.target = f"{name}-source", f"{name}-target"
        self.checkpoint = scratch / f"{name}-{broker.name}"
        self.group = f"{name}-lag"
        create_topics(broker, self.source, self.target, partitions=2)
        self.fed = 0

    def feed(self, count: int) -> None:
        values = [str(number).encode() for number in range(self.fed, self.fed + count)]
        arrow.write(self.broker.bootstrap_servers, self.source, pa.table({"key": values, "value": values}))
        self.fed += count

    def values(self, isolation: Any = "read_committed") -> list[int]:
        found = arrow.read(self.broker.bootstrap_servers, self.target, columns=["value"], isolation=isolation)
        return sorted(map(int, found["value"].to_pylist()))

    def check(self) -> None:
        until_settled(self.broker.bootstrap_servers, self.target)
        self.check_values()
        assert sum(self.planned().values()) == self.fed
        wait_until(self.groups_are_level, "the offsets of both groups", within_s=60)

    def check_values(self) -> None:
        assert self.values() == list(range(self.fed)), "a record was lost or doubled"

    def last(self, kind: str) -> int:
        """The newest batch in the checkpoint: planned (`offsets`) or done (`commits`)."""
        folder = self.checkpoint / kind
        found = [int(file.name) for file in folder.iterdir() if file.name.isdecimal()] if folder.exists() else []
        return max(found, default=-1)

    def groups_are_level(self) -> bool:
        """Whether the query's own group and the other one have the offsets where the last planned batch ends."""
        query_id = json.loads((self.checkpoint / "metadata").read_text())["id"]
        return all(self.committed_in(group) == self.planned() for group in (query_id, self.group))

    def committed_in(self, group: str) -> dict[tuple[str, int], int]:
        """What a group has, whatever is still open."""
        with SyncClient({"bootstrap.servers": self.broker.bootstrap_servers}) as client:
            found = client.run(committed_offsets, group, list(self.planned()), stable=False)
        return {place: each.offset for place, each in found.items()}

    def planned(self) -> dict[tuple[str, int], int]:
        lines = (self.checkpoint / "offsets" / str(self.last("offsets"))).read_text().splitlines()
        return offsets_in(lines[2])

    def as_plan(self) -> dict[str, str]:
        return {
            "servers": self.broker.bootstrap_servers,
            "source": self.source,
            "target": self.target,
            "checkpoint": str(self.checkpoint),
            "group": self.group,
            "at_once": str(AT_ONCE),
            "output_mode": self.output_mode,
        }


class Ended(NamedTuple):
    """How a driver ended, and what it said."""

    code: int
    said: str


def run_driver(plan: dict[str, Any], log: Path) -> Ended:
    require("java", "Spark needs Java 17")
    path = os.pathsep.join([str(PROJECT_ROOT / "src"), str(PROJECT_ROOT), os.environ.get("PYTHONPATH", "")])
    # Files, no pipes: Python workers outlive a killed driver for a moment, and would hold a pipe open.
    said = log.with_suffix(".out")
    with said.open("wb") as stdout, log.open("ab") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.exactly_once_driver", json.dumps(plan)],
            cwd=PROJECT_ROOT,
            env=os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            code = process.wait(400)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
            raise
    return Ended(code, said.read_text(errors="replace"))


def test_a_driver_that_is_killed_at_any_step(
    millstream: MillstreamProcess,
    apache_kafka: ApacheKafka,
    fresh_name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """The steps take turns with the two brokers; a second round has them the other way about."""
    copies = [Copy(broker, tmp_path, fresh_name) for broker in (millstream, apache_kafka)]
    log = tmp_path / "drivers.log"
    for turn in range(max(ROUNDS, 2 if request.config.getoption("--against") == "both" else 1)):
        for number, steps in enumerate(zip(STEPS[::2], STEPS[1::2], strict=True)):
            kill_the_driver(copies, steps if (turn + number) % 2 == 0 else steps[::-1], log)
        # The last run goes through, though a worker dies and Spark tries its task again.
        for copy in copies:
            copy.feed(AT_ONCE)
        flag = tmp_path / "flag"
        flag.write_text("amid")
        plan = {"copies": [copy.as_plan() for copy in copies], "master": "local[2,3]", "flag": str(flag)}
        done = run_driver(plan, log)
        assert done.code == 0, log.read_text(errors="replace")[-4000:]
        assert not flag.exists(), "no worker died"
        assert "a writer task of a transaction runs once" in done.said, done.said
        for copy in copies:
            copy.check()


def kill_the_driver(copies: Sequence[Copy], steps: Sequence[str], log: Path) -> None:
    """When each copy is at its step."""
    for copy in copies:
        copy.feed(2 * AT_ONCE)
    die = [(step, copy.last("offsets") + 1) for copy, step in zip(copies, steps, strict=True)]
    done = run_driver({"copies": [copy.as_plan() for copy in copies], "die": die}, log)
    assert done.code == -signal.SIGKILL, f"{done.said}\n{log.read_text(errors='replace')[-4000:]}"
    for copy, step in zip(copies, steps, strict=True):
        assert f"dies at {step}" in done.said
        assert copy.last("offsets") == copy.last("commits") + 1, "no batch was under way"
        if step in ("written", "between", "offsets"):
            assert len(copy.values("read_uncommitted")) > len(copy.values()), "nothing was in the open transaction"
            assert copy.committed_in(copy.group) != copy.planned(), "the offsets do not wait for the commit"
        if step == "ended":
            # Apache Kafka answers before it has written the markers.
            wait_until(copy.groups_are_level, "the offsets of the batch that is committed", within_s=60)


@pytest.fixture(params=["millstream", "apache-kafka"])
def frail_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker of this test's own, to be killed."""
    with own_broker_of(request.param, tmp_path / "broker") as made:
        yield made


@pytest.fixture
def start_copy(spark: SparkSession) -> Callable[[Copy], StreamingQuery]:
    def started(copy: Copy) -> StreamingQuery:
        rows: DataFrame = (
            spark.readStream.format("millstream")
            .option("kafka.bootstrap.servers", copy.broker.bootstrap_servers)
            .option("subscribe", copy.source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(AT_ONCE))
            .load()
            .select("key", "value")
        )
        return start(
            rows,
            servers=copy.broker.bootstrap_servers,
            topic=copy.target,
            checkpoint=copy.checkpoint,
            group=copy.group,
            trigger="available_now",
        )

    return started


def test_a_broker_that_is_killed_at_any_step(
    spark: SparkSession,
    frail_broker: RunningBroker,
    fresh_name: str,
    start_copy: Callable[[Copy], StreamingQuery],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each batch meets a broker that dies at another step and comes back; the query does not even notice.

    One of the steps is in the middle of a task, which has written some of its rows then and has more of them.
    """
    copy = Copy(frail_broker, tmp_path, fresh_name)
    steps = ["begin", "commit_offsets_in", "end_transaction"]
    killed: list[str] = []
    written, restarted = tmp_path / "written", tmp_path / "restarted"

    def killing(step: str, call: Callable[..., Any]) -> Callable[..., Any]:
        async def called(*args: Any, **kwargs: Any) -> Any:
            if step == "begin":
                result = await call(*args, **kwargs)
            if killed.count(step) < ROUNDS:
                killed.append(step)
                frail_broker.kill()
                frail_broker.start()
            return result if step == "begin" else await call(*args, **kwargs)

        return called

    def kill_amid() -> None:
        wait_until(written.exists, "a task that writes", within_s=300)
        frail_broker.kill()
        frail_broker.start()
        restarted.touch()

    for step in steps:
        monkeypatch.setattr(exactly_once_sink, step, killing(step, getattr(exactly_once_sink, step)))
    monkeypatch.setattr(exactly_once_routing, "WriteTask", pausing(written, restarted))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    copy.feed((2 + ROUNDS) * AT_ONCE)
    cloudpickle.register_pickle_by_value(exactly_once_driver)
    killer = threading.Thread(target=kill_amid)
    killer.start()
    try:
        start_copy(copy).awaitTermination()
    finally:
        written.touch()
        killer.join()
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
        cloudpickle.unregister_pickle_by_value(exactly_once_driver)
    assert sorted(set(killed)) == sorted(steps)
    assert restarted.exists(), "no task was writing"
    copy.check()


def test_an_answer_that_the_dying_broker_did_not_send(
    frail_broker: RunningBroker,
    fresh_name: str,
    start_copy: Callable[[Copy], StreamingQuery],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The commit arrives, its answer does not: the next broker process is asked again, and must know."""
    copy = Copy(frail_broker, tmp_path, fresh_name)
    end = exactly_once_sink.end_transaction
    killed: list[int] = []

    async def unanswered(client: Any, transaction: Any, *, commit: bool) -> Any:
        if len(killed) < ROUNDS:
            killed.append(transaction.producer.epoch)
            await end(client, transaction, commit=commit)
            frail_broker.kill()
            frail_broker.start()
        return await end(client, transaction, commit=commit)

    monkeypatch.setattr(exactly_once_sink, "end_transaction", unanswered)
    copy.feed((1 + ROUNDS) * AT_ONCE)
    start_copy(copy).awaitTermination()
    assert len(killed) == ROUNDS
    copy.check()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", ["millstream", "apache_kafka"])
def test_a_python_worker_that_is_killed(
    kind: str,
    moment: str,
    request: pytest.FixtureRequest,
    fresh_name: str,
    start_copy: Callable[[Copy], StreamingQuery],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    copy = Copy(request.getfixturevalue(kind), tmp_path, fresh_name)
    flag = tmp_path / "flag"
    flag.write_text(moment)
    monkeypatch.setattr(exactly_once_routing, "WriteTask", dying(flag))
    copy.feed(2 * AT_ONCE)
    cloudpickle.register_pickle_by_value(exactly_once_driver)
    try:
        with caplog.at_level(logging.WARNING, "millstream.spark"):
            start_copy(copy).awaitTermination()
    finally:
        cloudpickle.unregister_pickle_by_value(exactly_once_driver)
    assert not flag.exists(), "no worker died"
    assert "is tried again" in caplog.text
    copy.check()
