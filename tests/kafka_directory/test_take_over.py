"""Stop Millstream, start Apache Kafka on the same directory, read every record back, write more; and the other way.

From either side, with static and dynamic voters, after a clean stop and after kill -9 of both. Nothing is copied or
converted in between: the second broker gets the directory and, from `millstream kafka-properties`, its settings.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Literal

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from millstream.broker.metadata_replay import METADATA_DIRECTORY
from tests.support.apache_kafka import ApacheKafka, Voters, dump_log_segments
from tests.support.millstream_process import MillstreamProcess
from tests.support.ports import free_ports
from tests.support.requirements import PROJECT_ROOT
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC = "orders.placed"
PARTITIONS = 3
PER_ROUND = 300

Record = tuple[int, bytes | None, bytes | None, int]


def create_topic(broker: RunningBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    settings = {"retention.ms": "-1", "segment.bytes": "1048576"}
    for future in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=settings)]).values():
        future.result(90)


def write(broker: RunningBroker, round_name: str, compression: str) -> None:
    """Idempotent, keyed, with headers, in many small batches."""
    refused: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "enable.idempotence": True,
            "compression.type": compression,
            "batch.num.messages": 20,
            "partitioner": "murmur2_random",
        }
    )
    for number in range(PER_ROUND):
        producer.produce(
            TOPIC,
            key=f"k{number % 17}",
            value=f"{round_name}-{number}" + "." * (number % 50),
            headers={"round": round_name},
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
    assert producer.flush(180) == 0
    assert not refused


class StandsStill(AssertionError):
    """The consumer gets nothing, and there is something."""


def read(broker: RunningBroker) -> list[list[Record]]:
    """Every record of every partition: offset, key, value, timestamp.

    Apache Kafka raises the leader epochs once more right after its start. A consumer of librdkafka's that was assigned
    just before that stood still for good in one run of hundreds; another one reads. Of Millstream this is not excused.
    """
    try:
        return _read(broker)
    except StandsStill:
        if broker.name != ApacheKafka.name:
            raise
        return _read(broker)


def _read(broker: RunningBroker) -> list[list[Record]]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False}
    )
    try:
        return [_read_partition(consumer, partition) for partition in range(PARTITIONS)]
    finally:
        consumer.close()


def _ends(consumer: Consumer, partition: int) -> tuple[int, int] | None:
    """First and next offset. Apache Kafka listens before it leads, and this call does not try again by itself."""
    try:
        ends: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=60)
    except KafkaException as refusal:
        if not refusal.args[0].retriable() and refusal.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
            raise
        return None
    return ends


def _read_partition(consumer: Consumer, partition: int) -> list[Record]:
    low, high = wait_until(lambda: _ends(consumer, partition), "the partition's leader", within_s=180, every_s=0.1)
    consumer.assign([TopicPartition(TOPIC, partition, low)])
    records: list[Record] = []
    while not records or records[-1][0] < high - 1:
        message = consumer.poll(90)
        if message is None:
            raise StandsStill(f"partition {partition} ends at {high}, read {len(records)} records")
        assert message.error() is None, message.error()
        records.append((message.offset(), message.key(), message.value(), message.timestamp()[1]))
    return records


def apache_kafka_on(millstream: MillstreamProcess, folder: Path, voters: Voters, **more: str) -> ApacheKafka:
    """Apache Kafka with the settings that `millstream kafka-properties` prints, but a controller port of ours."""
    command = [sys.executable, "-m", "millstream.cli.main", "kafka-properties", str(millstream.data_directory)]
    environment = {"PYTHONPATH": str(PROJECT_ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    properties = dict(line.split("=", 1) for line in done.stdout.splitlines() if not line.startswith("#"))
    controller = properties["listeners"].rpartition(":")[2]
    (port,) = free_ports(1)
    properties = {name: value.replace(f":{controller}", f":{port}") for name, value in properties.items()}
    return ApacheKafka(folder, data_directory=millstream.data_directory, voters=voters, properties=properties | more)


def end(broker: RunningBroker, how: str) -> None:
    broker.stop() if how == "stop" else broker.kill()


def no_file_is_complained_about(data: Path, *, after: str) -> None:
    metadata = data / METADATA_DIRECTORY
    partitions = sorted(data.glob(f"{TOPIC}-*/*.log"))
    snapshots_and_log = sorted((*metadata.glob("*.log"), *metadata.glob("*.checkpoint")))
    # Whoever comes after a kill rebuilds the indexes; what lies there until then means nothing to either broker.
    indexes = sorted((*data.glob("*/*.index"), *data.glob("*/*.timeindex"))) if after == "stop" else []
    assert len(partitions) >= PARTITIONS
    for files, flags in (
        (partitions, ("--deep-iteration", "--print-data-log")),
        (snapshots_and_log, ("--deep-iteration", "--print-data-log", "--cluster-metadata-decoder")),
        (indexes, ("--index-sanity-check",)),
    ):
        if not files:
            continue
        done = dump_log_segments(files, *flags)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("Dumping ") == len(files)
        for complaint in ("isvalid: false", "ismatches", "Found timestamp", "out of order"):
            assert complaint not in done.stdout, done.stdout


@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("voters", ["static", "dynamic"])
@pytest.mark.parametrize("first", ["millstream", "apache-kafka"])
def test_one_directory_serves_both_in_turn(
    tmp_path: Path, first: Literal["millstream", "apache-kafka"], voters: Voters, how: str
) -> None:
    data = tmp_path / "data"
    (controller,) = free_ports(1)
    static = {"controller.quorum.voters": f"1@127.0.0.1:{controller}"} if voters == "static" else {}
    millstream = MillstreamProcess(tmp_path / "millstream", data_directory=data, settings=static)
    kafka: ApacheKafka | None = None
    if first == "apache-kafka":
        kafka = ApacheKafka(tmp_path / "kafka", data_directory=data, voters=voters)
        kafka.format()
    history: list[list[Record]] = [[] for _ in range(PARTITIONS)]
    try:
        for round_number, turn in enumerate(["millstream", "apache-kafka"] * 2 if kafka is None else _KAFKA_FIRST):
            if turn == "apache-kafka" and kafka is None:
                kafka = apache_kafka_on(millstream, tmp_path / "kafka", voters)
            broker: RunningBroker = millstream if turn == "millstream" or kafka is None else kafka
            broker.start()
            if round_number == 0:
                create_topic(broker)
            else:
                found = read(broker)
                assert found == history, f"{turn} reads other records than were written before round {round_number}"
            write(broker, f"{turn}-{round_number}", ("none", "lz4", "zstd", "gzip")[round_number])
            history = read(broker)
            assert sum(map(len, history)) == PER_ROUND * (round_number + 1)
            end(broker, how)
            if turn == "millstream":
                no_file_is_complained_about(data, after=how)
    finally:
        millstream.kill()
        if kafka is not None:
            kafka.kill()


_KAFKA_FIRST = ["apache-kafka", "millstream", "apache-kafka", "millstream"]
