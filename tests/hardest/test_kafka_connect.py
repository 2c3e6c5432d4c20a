"""Kafka Connect, distributed, with exactly-once sources: a file becomes a topic becomes a file.

Connect's workers make a group with a protocol of their own (`connect`), keep all they know in compacted topics, and
write a source's records and its offsets in one transaction. Workers come and are killed, and so is the broker: in the
topic each line stands once and in order. The sink is at least once, as everywhere, but nothing may be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hardest.connect_worker import ConnectWorker
from tests.support.topics import create_topics, in_the_middle, read_committed, stable_ends
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.slow]

# The connector reads 2,000 lines at a time, each time in a transaction. What would be left over of the last time would
# stay in its buffer until the file grows again, so this is a multiple.
MANY = 20_000


class Files:
    """What goes in at one end and should come out at the other."""

    def __init__(self, directory: Path) -> None:
        self.source = directory / "source.txt"
        self.sink = directory / "sink.txt"
        self.lines: list[str] = []

    def append(self, count: int) -> int:
        more = [f"line {number}" for number in range(len(self.lines), len(self.lines) + count)]
        with self.source.open("a") as file:
            file.writelines(f"{line}\n" for line in more)
        self.lines += more
        return count

    def arrived(self) -> set[str]:
        return set(self.sink.read_text().splitlines()) if self.sink.exists() else set()


def all_arrives(broker: RunningBroker, files: Files, worker: ConnectWorker) -> None:
    try:
        wait_until(lambda: files.arrived() == set(files.lines), "all lines in the sink", within_s=180, every_s=0.1)
    except TimeoutError as late:
        raise AssertionError(
            f"{late}: {len(files.arrived())} of {len(files.lines)}\n{worker.process.said()[-6000:]}"
        ) from late
    stored = [(seen.value or b"").decode() for seen in read_committed(broker, "lines", 1)]
    assert stored == files.lines


def test_lines_flow_from_file_to_file_exactly_once_into_the_topic(own_broker: RunningBroker, tmp_path: Path) -> None:
    create_topics(own_broker, "lines", partitions=1)
    files = Files(tmp_path)
    files.append(1000)
    with ConnectWorker(own_broker, tmp_path, "one") as one, ConnectWorker(own_broker, tmp_path, "two") as two:
        one.start()
        one.ready()
        one.configure(
            "source",
            **{
                "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
                "tasks.max": "1",
                "file": str(files.source),
                "topic": "lines",
                "exactly.once.support": "required",
            },
        )
        one.configure(
            "sink",
            **{
                "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
                "tasks.max": "1",
                "file": str(files.sink),
                "topics": "lines",
                "consumer.override.isolation.level": "read_committed",
                "consumer.override.auto.offset.reset": "earliest",
                "consumer.override.session.timeout.ms": "6000",
                "consumer.override.heartbeat.interval.ms": "500",
            },
        )
        for connector in ("source", "sink"):
            one.runs(connector)
        all_arrives(own_broker, files, one)

        two.start()
        two.ready()
        before = stable_ends(own_broker, "lines", 1)
        files.append(MANY)
        in_the_middle(own_broker, "lines", 1, before=before, of=MANY, feed=files.append)
        one.process.kill()
        for connector in ("source", "sink"):
            two.runs(connector)
        all_arrives(own_broker, files, two)

        before = stable_ends(own_broker, "lines", 1)
        files.append(MANY)
        in_the_middle(own_broker, "lines", 1, before=before, of=MANY, feed=files.append)
        own_broker.kill()
        own_broker.start()
        files.append(100)
        all_arrives(own_broker, files, two)

        assert two.process.stop() in (0, 143)
        files.append(100)
        one.start()
        one.ready()
        all_arrives(own_broker, files, one)
        wait_until(lambda: one.connectors() == ["sink", "source"], "both connectors", within_s=120, every_s=0.1)
        one.remove("source")
        wait_until(lambda: one.connectors() == ["sink"], "the source to be gone", within_s=120, every_s=0.1)
