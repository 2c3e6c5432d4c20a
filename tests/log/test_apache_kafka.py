"""Our files under Apache Kafka's own eyes, and its files under ours."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from millstream.log.directory import LogDirectory
from millstream.log.log import Log, Origin
from millstream.records.building import encode_batch, end_transaction_marker
from millstream.records.codecs import Codec
from millstream.runtime.real import RealClock, RealDisk, RealRandom
from tests.log.making import NOW_MS, SMALL, commit, open_log, records_of
from tests.support.apache_kafka import ApacheKafka, dump_log_segments

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = [pytest.mark.java, pytest.mark.slow]

COMPLAINTS = ("ismatch", "onsecutive", "not found", "orrupt", "Exception", "invalid bytes", "isvalid: false")
CONFIG = replace(SMALL, segment_bytes=3_000, index_interval_bytes=300)


def write_everything(log: Log) -> None:
    """Every codec, idempotent and transactional producers, commits and aborts, timestamps in no order."""
    sequences = dict.fromkeys((1, 2, 3), 0)
    for number in range(60):
        producer = number % 4
        records = [
            (f"key-{number}".encode(), b"value" * (number % 7), (("h", b"x"),), NOW_MS + (number * 37) % 100 + each)
            for each in range(1 + number % 5)
        ]
        fields: dict[str, int | bool] = {}
        if producer:
            fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequences[producer]}
            fields["transactional"] = producer == 3
            sequences[producer] += len(records)
        log.append_as_leader(encode_batch(records, codec=list(Codec)[number % 5], **fields), number // 20, NOW_MS)
        if number % 12 == 11:
            marker = end_transaction_marker(
                commit=number % 24 == 11, producer_id=3, producer_epoch=0, coordinator_epoch=1, timestamp=NOW_MS
            )
            log.append_as_leader(marker, number // 20, NOW_MS, origin=Origin.COORDINATOR)
    commit(log)


def assert_no_complaint(said: subprocess.CompletedProcess[str]) -> None:
    assert said.returncode == 0, said.stderr
    # With --deep-iteration the tool finds fault with every segment, its own included, that does not begin at 0.
    text = re.sub(r"Non-consecutive offsets in \S+\n +-1 is followed by \d+\n", "", said.stdout + said.stderr)
    for complaint in COMPLAINTS:
        assert complaint not in text, text[-5_000:]


def assert_apache_kafka_accepts(folder: Path) -> None:
    files = sorted(
        path for path in folder.iterdir() if path.suffix in {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    )
    assert len({path.suffix for path in files}) == 5
    deep = dump_log_segments(files, "--deep-iteration", "--print-data-log")
    sane = dump_log_segments([path for path in files if "index" in path.suffix], "--index-sanity-check")
    assert_no_complaint(deep)
    assert_no_complaint(sane)
    assert sane.stdout.count("passed sanity check") == sum(path.suffix in {".index", ".timeindex"} for path in files), (
        sane.stdout
    )


@pytest.mark.parametrize("history", ["closed", "killed and recovered", "truncated", "log append time"])
def test_apache_kafka_finds_nothing_wrong(tmp_path: Path, history: str) -> None:
    folder = tmp_path / "orders-0"
    disk = RealDisk()
    log = open_log(disk, str(folder), config=CONFIG, log_append_time=history == "log append time")
    write_everything(log)
    if history == "killed and recovered":
        log.active.file.append(b"torn")
        log = open_log(disk, str(folder), config=CONFIG, clean=False)
    elif history == "truncated":
        log.truncate_to(log.end_offset - 20, NOW_MS)
        log.append_as_leader(encode_batch([(b"k", b"v", (), NOW_MS)]), 9, NOW_MS)
        log.remove_due(NOW_MS + 10_000)
    assert len(log.segments) > 2
    log.close()
    assert_apache_kafka_accepts(folder)


@pytest.fixture(scope="module")
def kafkas_directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What Apache Kafka leaves after a kill and after a clean stop: small segments, two codecs, idempotent producer."""
    base = tmp_path_factory.mktemp("kafka")
    found: dict[str, Path] = {}
    with ApacheKafka(base / "node", properties={"log.segment.bytes": "1048576"}) as kafka:
        kafka.format()
        kafka.start()
        for ending, codec in (("killed", "lz4"), ("stopped", "zstd")):
            kafka.run_tool(
                "ProducerPerformance", "--topic", "orders", "--num-records", "30000", "--record-size", "100",
                "--throughput", "-1", "--producer-props", f"bootstrap.servers={kafka.bootstrap_servers}",
                f"compression.type={codec}", "batch.size=4096", "enable.idempotence=true", check=True,
            )  # fmt: skip
            kafka.run_tool(
                "ConsoleProducer", "--bootstrap-server", kafka.bootstrap_servers, "--topic", "orders",
                input=f"{ending}\n", check=True,
            )  # fmt: skip
            if ending == "killed":
                kafka.kill()
            else:
                kafka.stop()
            found[ending] = base / ending
            shutil.copytree(kafka.data_directory, found[ending])
            if ending == "killed":
                kafka.start()
    return found


@pytest.mark.parametrize(("ending", "count"), [("killed", 30_001), ("stopped", 60_002)])
def test_we_read_what_apache_kafka_left(
    kafkas_directories: dict[str, Path], tmp_path: Path, ending: str, count: int
) -> None:
    copy = tmp_path / "data"
    shutil.copytree(kafkas_directories[ending], copy)
    disk = RealDisk()
    directory = LogDirectory.open(disk, str(copy), RealClock(), RealRandom())
    assert directory.clean == (ending == "stopped")
    assert ("orders", 0) in directory.found
    log = directory.open_or_create("orders", 0, None, replace(CONFIG, segment_bytes=1 << 20))
    assert log.topic_id is not None
    assert log.end_offset == count
    records = records_of(log)
    assert [record.offset for record in records] == list(range(count))
    assert records[-1].value == ending.encode()
    assert len(log.segments) > 1
    assert len(log.producers) >= 2
    newest = log.offset_of_max_timestamp()
    assert newest is not None
    assert newest.timestamp == max(record.timestamp for record in records)
    log.append_as_leader(encode_batch([(b"k", b"ours", (), RealClock().wall_ms())]), 99, RealClock().wall_ms())
    for each in directory.found:
        directory.open_or_create(*each, None, CONFIG)
    directory.close()
    assert_dump_is_clean(copy / "orders-0", count)


def assert_dump_is_clean(folder: Path, last_offset: int) -> None:
    files = sorted(path for path in folder.iterdir() if path.suffix in {".log", ".index", ".timeindex", ".snapshot"})
    said = dump_log_segments(files, "--deep-iteration")
    assert_no_complaint(said)
    assert f"baseOffset: {last_offset} lastOffset: {last_offset}" in said.stdout
