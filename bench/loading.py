"""How long a coordinator takes to be of use again when its topic is long.

Each contender writes a directory once; then both start on copies of both, so that neither has the advantage of its own
files, and the files stay as they are. The copies have just been written: they come from the page cache. The clock
runs from the start of the process until every group's offset is answered, and answered right.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from tests.support.apache_kafka import PRODUCTION, ApacheKafka
from tests.support.millstream_process import MillstreamProcess
from tests.support.ports import free_ports
from tests.support.raw import RawClient
from tests.support.requirements import PROJECT_ROOT
from tests.support.waiting import wait_until

from bench import contenders, offsets
from bench.contenders import APACHE_KAFKA, HEAP, MILLSTREAM
from bench.rows import Bar, Figures, Row
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import RunningBroker

    from bench.session import Session

COMMITS = 1_000_000
TOPIC, PARTITIONS = "committed", 10
GROUPS = [f"group-{number}" for number in range(1_000)]


def start_with_commits(session: Session, name: str) -> Figures:
    """The seconds on each contender's directory."""
    rounds = session.amount(COMMITS, 50_000) // len(GROUPS) // PARTITIONS
    figures: Figures = {}
    for maker in (APACHE_KAFKA, MILLSTREAM):
        prepared = session.prepared(maker, "commits", partial(_prepare, rounds=rounds))
        figures[_on_files_of(maker)] = _start_on(session, name, prepared, rounds)
    return figures


def _on_files_of(maker: str) -> str:
    return f"s on {maker}'s files"


def _prepare(broker: RunningBroker, rounds: int) -> None:
    """A commit of ten partitions at a time, as a consumer of a few partitions makes it."""
    with RawClient.of(broker, timeout_s=120) as client:
        wanted = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1, assignments=[], configs=[])
        (created,) = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=60_000), 5).topics
        assert created.error_code == ErrorCode.NONE, created
        contenders.wait_for_leaders(client, TOPIC, PARTITIONS)
        offsets.wait_for_coordinators(client, GROUPS)
        frames = offsets.commit_frames(GROUPS, TOPIC, range(PARTITIONS), rounds=rounds, partitions_each=PARTITIONS)
        offsets.send_all(client, frames)


def _start_on(session: Session, name: str, prepared: Path, rounds: int) -> float:
    folder = session.folder(f"{name}-on-a-copy-")
    copy = folder / "data"
    shutil.copytree(prepared, copy)
    broker, port = _on_existing(name, folder, copy)
    try:
        began = time.perf_counter()
        broker.launch()
        wait_until(lambda: _answers(port, rounds), "all offsets", within_s=300, every_s=0.005)
        return time.perf_counter() - began
    finally:
        broker.kill()
        shutil.rmtree(folder)


def _answers(port: int, rounds: int) -> bool:
    try:
        with RawClient("127.0.0.1", port, timeout_s=60) as client:
            # First a question of no weight, so that asking all the time does not slow the loading down.
            if None in offsets.fetched(client, GROUPS[:1], TOPIC).values():
                return False
            found = set(offsets.fetched(client, GROUPS, TOPIC, PARTITIONS - 1).values())
    except OSError:
        return False
    assert found <= {None, rounds}, f"offsets are wrong: {found}"
    return found == {rounds}


def _on_existing(name: str, folder: Path, data: Path) -> tuple[RunningBroker, int]:
    """A contender on a directory that somebody wrote, and the port that it will listen on."""
    if name == MILLSTREAM:
        (port,) = free_ports(1)
        return MillstreamProcess(folder, data_directory=data, listen=f"127.0.0.1:{port}"), port
    command = [sys.executable, "-m", "millstream.cli.main", "kafka-properties", str(data)]
    environment = os.environ | {"PYTHONPATH": str(PROJECT_ROOT / "src")}
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    properties = dict(line.split("=", 1) for line in printed.splitlines() if not line.startswith("#"))
    broker_port, controller_port = free_ports(2)
    listeners = properties["listeners"].split(",")
    controller = properties["controller.listener.names"]
    properties["listeners"] = ",".join(
        re.sub(r"\d+$", str(controller_port if each.startswith(controller) else broker_port), each)
        for each in listeners
    )
    properties["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{controller_port}"
    kafka = ApacheKafka(
        folder, data_directory=data, voters="dynamic", heap=HEAP, jvm_options=PRODUCTION, properties=properties
    )
    return kafka, broker_port


ROWS = (
    Row(
        "start-with-commits",
        f"start with {COMMITS:,} offset commits in the offsets topic",
        start_with_commits,
        tuple(Bar(_on_files_of(maker), "s", ratio_at_most=1.0) for maker in (APACHE_KAFKA, MILLSTREAM)),
    ),
)
