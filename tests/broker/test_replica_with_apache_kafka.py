"""Partitions with replicas on two Millstream brokers and one of Apache Kafka: each follows the others, and takes over.

One topic, three partitions, a leader of each kind of broker among them; the replicas' files are the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.apache_kafka import ApacheKafka
from tests.support.millstream_process import MillstreamProcess
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

from millstream.client.admin.topics import NewTopic, create_topics, describe_topics
from millstream.client.errors import ClientError
from millstream.client.produce import Producer
from millstream.client.sync import SyncClient
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.client.client import Client

pytestmark = pytest.mark.java

CLUSTER_ID = "bWlsbHN0cmVhbS10ZXN0cw"
TOPIC = "mixed"
LEADERS = {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2)}
FILE = "00000000000000000000.log"


async def write(client: Client, partition: int, count: int) -> None:
    producer = Producer(client)
    for number in range(count):
        await producer.send(TOPIC, partition, [(b"key", b"value %d" % number, (), 1_700_000_000_000 + number)])


def test_replicas_of_both_follow_each_other_and_take_over(tmp_path: Path) -> None:
    controllers = free_ports(3)
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
    shared = {
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "process.roles": "broker,controller",
        "min.insync.replicas": "2",
    }
    ours = {
        number: MillstreamProcess(
            tmp_path / f"node-{number}",
            settings={
                **shared,
                "node.id": str(number),
                "listeners": f"CONTROLLER://127.0.0.1:{controllers[number - 1]}",
            },
            arguments=("--cluster-id", CLUSTER_ID),
        )
        for number in (1, 2)
    }
    (broker_port,) = free_ports(1)
    theirs = ApacheKafka(
        tmp_path / "kafka",
        node_id=3,
        cluster_id=CLUSTER_ID,
        properties={
            **shared,
            "listeners": f"PLAINTEXT://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controllers[2]}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
        },
    )
    places = {1: ours[1].data_directory, 2: ours[2].data_directory, 3: theirs.data_directory}

    def same(partition: int) -> bool:
        files = [place / f"{TOPIC}-{partition}" / FILE for place in places.values()]
        stored = {file.read_bytes() if file.exists() else b"" for file in files}
        return len(stored) == 1 and b"" not in stored

    def in_sync(client: SyncClient, partition: int) -> tuple[int, ...]:
        found = client.run(describe_topics, [TOPIC])[TOPIC]
        # Whoever is asked may not have heard of the topic yet.
        return () if isinstance(found, Exception) else tuple(sorted(found.partitions[partition].isr))

    theirs.format()
    try:
        theirs.launch()
        for node in ours.values():
            node.launch()
        for node in ours.values():
            node.until_ready(within_s=120)
        servers = ",".join([*(node.bootstrap_servers for node in ours.values()), f"127.0.0.1:{broker_port}"])
        with SyncClient({"bootstrap.servers": servers}) as client:
            wait_until(lambda: _created(client), "the topic to be created", within_s=120, every_s=1)
            for partition in LEADERS:
                client.run(write, partition, 20)
                wait_until(lambda: same(partition), f"the replicas of {partition} to be the same", within_s=60)  # noqa: B023
                wait_until(lambda: in_sync(client, partition) == (1, 2, 3), "all to be in sync", within_s=60)  # noqa: B023

            ours[1].kill()
            client.run(write, 0, 20)
            wait_until(lambda: in_sync(client, 0) == (2, 3), "the ISR to be without it", within_s=60)
            ours[1].start(within_s=120)
            wait_until(lambda: in_sync(client, 0) == (1, 2, 3), "the one that was killed to be back", within_s=60)
            wait_until(lambda: same(0), "its log to be the others'", within_s=60)
    finally:
        for node in ours.values():
            node.kill()
        theirs.kill()


def _created(client: SyncClient) -> bool:
    try:
        created = client.run(create_topics, [NewTopic(TOPIC, assignments=LEADERS)])[TOPIC]
    except ClientError:
        return False
    # It is there already where an answer was lost.
    return not isinstance(created, Exception) or getattr(created, "code", None) is ErrorCode.TOPIC_ALREADY_EXISTS
