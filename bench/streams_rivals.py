"""Streams on Spark against the two streaming libraries that Python has, Faust and Quix Streams.

The same work from the same broker on the same machine: keep the clicks that cost something, count them by user in
windows of a minute, write the counts that have changed: ours with each micro-batch, Faust once a second, Quix Streams
when a window has closed. Each of them runs as many workers as there are cores, at its defaults (at least
once; ours is exactly once), and is given fewer records than we are, so that each takes about as long. All are started
before there is anything to do, and have the records written to them at once. Their time is that from the first record
that a worker takes to the last; ours begins with the first that is written, and ends when all results are committed.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.support.waiting import wait_until

from bench import contenders
from bench.contenders import MILLSTREAM
from bench.environments import python_with
from bench.rows import Bar, Figures, Row
from bench.streams_spark import (
    CHUNK,
    PARTITIONS,
    RECORDS_PER_SECOND,
    START_MS,
    WARM,
    application,
    follow_application,
    say,
)
from millstream import arrow
from millstream.client.admin.described_groups import GroupDescription, describe_groups
from millstream.client.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.running import RunningBroker

    from bench.session import Session

USERS = 10_000
# Package, program, and as many records as it does in about half a minute.
RIVALS = {
    "Faust": ("faust-streaming==0.15.3", "rival_faust.py", 60_000),
    "Quix Streams": ("quixstreams==3.28.1", "rival_quix.py", 600_000),
}
TAKES_WITHIN_S = 600


def clicks(count: int) -> Iterator[pa.RecordBatch]:
    """Records of about a hundred bytes; one in five is filtered out."""
    for first in range(0, count, CHUNK):
        numbers = range(first, min(first + CHUNK, count))
        users = [f"user-{number * 7919 % USERS}" for number in numbers]
        values = [
            b'{"user":"%s","page":"/mill/%06d/and/something/to/fill/it","cents":%d}'
            % (user.encode(), number % 1_000_000, 50 if number % 5 == 0 else 250)
            for number, user in zip(numbers, users, strict=True)
        ]
        times = [START_MS + number * 1_000 // RECORDS_PER_SECOND for number in numbers]
        yield pa.record_batch(
            {
                "key": pa.array([user.encode() for user in users], pa.binary()),
                "value": pa.array(values, pa.binary()),
                "timestamp": pa.array(times, pa.int64()),
            }
        )


def rivals(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    rates = {"ours": _ours(session, broker)}
    for rival, (_, _, records) in RIVALS.items():
        rates[rival] = _theirs(session, broker, rival, session.amount(records, 4_000))
    figures = {f"{who} records/s": rate for who, rate in rates.items()}
    return figures | {f"ratio to {rival}": rates["ours"] / rates[rival] for rival in RIVALS}


def _ours(session: Session, broker: RunningBroker) -> float:
    records = session.amount(4_000_000, 20_000)
    servers = broker.bootstrap_servers
    with (
        contenders.topic(broker, PARTITIONS) as source,
        contenders.topic(broker, PARTITIONS) as target,
        application(session, broker) as ask,
    ):
        follow_application(ask, "filtered_count", {"source": source, "target": target})
        # Until Java has compiled what it runs; the rivals have nothing of the kind.
        arrow.write(servers, source, clicks(session.amount(1_000_000, WARM)))
        ask("settle")
        batches = list(clicks(records))
        began = time.perf_counter()
        arrow.write(servers, source, batches)
        ask("settle")
        seconds = time.perf_counter() - began
        say(f"filtered_count: {records:,} records in {seconds:.1f} s, phases in ms {ask('stop')}")
    return records / seconds


def _theirs(session: Session, broker: RunningBroker, rival: str, records: int) -> float:
    requirement, script, _ = RIVALS[rival]
    python = str(python_with(requirement))
    with contenders.topic(broker, PARTITIONS) as source, contenders.topic(broker, PARTITIONS) as target:
        workers = [
            _start(session, broker, [python, str(Path(__file__).with_name(script))], source, target)
            for _ in range(os.cpu_count() or 1)
        ]
        try:
            _wait_for_group(broker, f"rival-{target}", len(workers))
            # Made before: it would take them the processors' time.
            batches = list(clicks(records))
            arrow.write(broker.bootstrap_servers, source, batches)
            said = [_result(worker) for worker in workers]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
    taken = sum(each["records"] for each in said)
    assert taken == records, f"{rival} took {taken} of {records} records"
    busy = [each for each in said if each["records"]]
    return records / (max(each["last"] for each in busy) - min(each["first"] for each in busy))


def _start(
    session: Session, broker: RunningBroker, command: list[str], source: str, target: str
) -> subprocess.Popen[str]:
    folder = session.folder("rival-")
    words = [*command, broker.bootstrap_servers, source, target, f"rival-{target}", str(PARTITIONS), str(folder)]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder)


def _wait_for_group(broker: RunningBroker, group: str, members: int) -> None:
    """Until all workers share the partitions, and have had time to say so to themselves."""
    with SyncClient({"bootstrap.servers": broker.bootstrap_servers}) as client:

        def settled() -> bool:
            found = client.run(describe_groups, [group])[group]
            return isinstance(found, GroupDescription) and found.state == "Stable" and len(found.members) == members

        wait_until(settled, f"{members} members of {group}", within_s=120, every_s=0.5)
    time.sleep(5)


def _result(worker: subprocess.Popen[str]) -> dict[str, Any]:
    assert worker.stdout is not None
    deadline = time.monotonic() + TAKES_WITHIN_S
    while time.monotonic() < deadline:
        line = worker.stdout.readline()
        assert line, f"a worker ended with {worker.wait()} before it had an answer"
        if line.startswith("{"):
            answer: dict[str, Any] = json.loads(line)
            return answer
    raise TimeoutError(f"no answer in {TAKES_WITHIN_S} s")


ROWS = (
    Row(
        "streams-rivals",
        "filter and windowed count: streams on Spark, exactly once, against Faust and Quix Streams, at least once",
        rivals,
        (
            Bar("ratio to Faust", "x", at_least=5),
            Bar("ratio to Quix Streams", "x", at_least=5),
            Bar("ours records/s", "records/s"),
        ),
        rounds=1,
        contenders=(MILLSTREAM,),
    ),
)
