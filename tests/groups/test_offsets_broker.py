"""Committed offsets through a real broker, by real clients, over restarts and kill -9."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from millstream import Broker
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.list_groups import ListGroupsRequest
from millstream.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from millstream.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from millstream.protocol.uuid import ZERO_UUID
from tests.support.apache_kafka import dump_log_segments
from tests.support.ports import free_ports
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.millstream_process import MillstreamProcess

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2


@pytest.fixture(scope="module")
def embedded() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("orders", partitions=3)
        yield running


@pytest.fixture
def client(embedded: Broker) -> Iterator[RawClient]:
    with RawClient("127.0.0.1", embedded.port) as connected:
        yield connected


def find(client: RawClient, group: str) -> None:
    answer = client.call(FindCoordinatorRequest(key=group, key_type=GROUP_KEY), 3)
    assert answer.error_code == 0, answer


def commit(client: RawClient, group: str, offset: int, *, partition: int = 0, topic: str = "orders") -> ErrorCode:
    request = OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata="note"
                    )
                ],
            )
        ],
    )
    return ErrorCode(client.call(request, 9).topics[0].partitions[0].error_code)


def committed(client: RawClient, group: str) -> dict[tuple[str, int], int]:
    """Everything that the group has committed."""
    answer = client.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]), 8)
    (found,) = answer.groups
    assert found.error_code == 0, found
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in found.topics
        for partition in topic.partitions
    }


def test_a_confluent_consumer_commits_and_reads_back(embedded: Broker) -> None:
    consumer = Consumer({"bootstrap.servers": embedded.bootstrap_servers, "group.id": "librdkafka"})
    try:
        nothing = consumer.committed([TopicPartition("orders", 0)], timeout=60)
        assert nothing[0].offset < 0
        consumer.commit(offsets=[TopicPartition("orders", 0, 17, metadata="why")], asynchronous=False)
        (found,) = consumer.committed([TopicPartition("orders", 0)], timeout=60)
        assert (found.offset, found.metadata) == (17, "why")
    finally:
        consumer.close()


# In a process of its own: importing it raises deprecation warnings, which are errors here.
KAFKA_PYTHON = """
import sys
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

consumer = KafkaConsumer(bootstrap_servers=sys.argv[1], group_id="kafka-python", enable_auto_commit=False)
place = TopicPartition("orders", 1)
consumer.assign([place])
consumer.commit({place: OffsetAndMetadata(23, "why", -1)})
print(consumer.committed(place))
consumer.close()
"""


def test_a_kafka_python_consumer_commits_and_reads_back(embedded: Broker) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KAFKA_PYTHON, embedded.bootstrap_servers],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "23\n", done.stderr


def test_the_first_who_asks_for_a_coordinator_gets_one() -> None:
    with Broker() as broker, RawClient("127.0.0.1", broker.port) as client:
        answer = client.call(FindCoordinatorRequest(key="g", key_type=GROUP_KEY), 0)
        assert (answer.error_code, answer.port) == (0, broker.port)
        many = client.call(FindCoordinatorRequest(coordinator_keys=["a", "b"], key_type=TRANSACTION_KEY), 6)
        assert [(found.key, found.error_code, found.port) for found in many.coordinators] == [
            ("a", 0, broker.port),
            ("b", 0, broker.port),
        ]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        topics = admin.list_topics(timeout=60).topics
        assert {name: len(topics[name].partitions) for name in ("__consumer_offsets", "__transaction_state")} == {
            "__consumer_offsets": 50,
            "__transaction_state": 50,
        }
        wanted = {
            "__consumer_offsets": {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": "104857600",
            },
            "__transaction_state": {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": "2",
                "segment.bytes": "104857600",
                "unclean.leader.election.enable": "false",
            },
        }
        for name, configs in wanted.items():
            (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)]).values()
            found = described.result(60)
            assert {key: found[key].value for key in configs} == configs


@pytest.mark.parametrize("version", [1, 2, 3])
def test_before_many_keys_a_success_has_the_name_of_its_code(client: RawClient, version: int) -> None:
    """Apache Kafka says so."""
    answer = client.call(FindCoordinatorRequest(key="g", key_type=GROUP_KEY), version)
    assert (answer.error_code, answer.error_message) == (0, "NONE")


def test_share_groups_and_unknown_kinds_are_refused(client: RawClient) -> None:
    for key_type, version, error in (
        (SHARE_KEY, 6, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (SHARE_KEY, 5, ErrorCode.INVALID_REQUEST),
        (3, 6, ErrorCode.INVALID_REQUEST),
    ):
        answer = client.call(FindCoordinatorRequest(coordinator_keys=["k"], key_type=key_type), version)
        assert answer.coordinators[0].error_code == error


def test_a_commit_before_anybody_asked_for_the_coordinator_is_told_to_ask() -> None:
    with Broker() as broker, RawClient("127.0.0.1", broker.port) as client:
        broker.create_topic("orders")
        assert commit(client, "g", 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_many_groups_are_fetched_at_once(client: RawClient) -> None:
    groups = [f"many-{number}" for number in range(60)]
    find(client, "many-0")
    for number, group in enumerate(groups):
        assert commit(client, group, number) is ErrorCode.NONE
    answer = client.call(
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group, topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
                )
                for group in groups
            ]
        ),
        9,
    )
    assert [(found.group_id, found.topics[0].partitions[0].committed_offset) for found in answer.groups] == [
        (group, number) for number, group in enumerate(groups)
    ]


def test_pipelined_commits_are_answered_in_order(client: RawClient) -> None:
    find(client, "pipelined")
    requests = 500
    for offset in range(requests):
        client.send(
            OffsetCommitRequest(
                group_id="pipelined",
                member_id="",
                topics=[
                    OffsetCommitRequestTopic(
                        name="orders",
                        partitions=[
                            OffsetCommitRequestPartition(
                                partition_index=0, committed_offset=offset, committed_metadata=None
                            )
                        ],
                    )
                ],
            ),
            8,
        )
    assert {client.receive().topics[0].partitions[0].error_code for _ in range(requests)} == {0}
    assert committed(client, "pipelined") == {("orders", 0): requests - 1}


def test_offsets_of_a_deleted_topic_are_forgotten(embedded: Broker, client: RawClient) -> None:
    embedded.create_topic("short-lived", partitions=2)
    find(client, "reader")
    commit(client, "reader", 1)
    commit(client, "reader", 5, topic="short-lived", partition=1)
    client.call(
        DeleteTopicsRequest(topics=[DeleteTopicState(name="short-lived", topic_id=ZERO_UUID)], timeout_ms=10_000), 6
    )
    assert committed(client, "reader") == {("orders", 0): 1}


def test_the_lag_of_a_group_is_a_metric(fresh_millstream: Callable[..., MillstreamProcess]) -> None:
    (metrics_port,) = free_ports(1)
    process = fresh_millstream(
        settings={"offsets.topic.num.partitions": "2"}, arguments=("--metrics", f"127.0.0.1:{metrics_port}")
    )
    process.start()
    producer = Producer({"bootstrap.servers": process.bootstrap_servers})
    for number in range(10):
        producer.produce("orders", str(number))
    producer.flush(60)
    with RawClient("127.0.0.1", process.port) as client:
        find(client, "g")
        assert commit(client, "g", 3) is ErrorCode.NONE
    with urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=60) as page:
        lines = page.read().decode().splitlines()
    assert 'millstream_consumer_lag_records{group="g",partition="0",topic="orders"} 7.0' in lines
    assert "millstream_groups 1.0" in lines


def test_offsets_survive_kill_9_and_clean_restarts(fresh_millstream: Callable[..., MillstreamProcess]) -> None:
    process = fresh_millstream(settings={"offsets.topic.num.partitions": "4"})
    process.start()
    producer = Producer({"bootstrap.servers": process.bootstrap_servers})
    producer.produce("orders", b"first")
    producer.flush(60)
    groups = [f"g{number}" for number in range(8)]
    ends: list[Callable[[], None]] = [process.kill, process.stop, process.kill]
    for turn, end in enumerate(ends):
        with RawClient("127.0.0.1", process.port) as client:
            find(client, "g0")
            for group in groups:
                assert _when_loaded(partial(commit, client, group, 100 + turn)) is ErrorCode.NONE
        end()
        process.start()
        with RawClient("127.0.0.1", process.port) as client:
            wait_until(lambda: _loaded(client, groups), "the coordinators to load")
            for group in groups:
                assert committed(client, group) == {("orders", 0): 100 + turn}
            listed = client.call(ListGroupsRequest(), 5)
            assert sorted(found.group_id for found in listed.groups) == groups


def _loaded(client: RawClient, groups: list[str]) -> bool:
    answer = client.call(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]), 8
    )
    return all(found.error_code == 0 for found in answer.groups)


def _when_loaded(attempt: Callable[[], ErrorCode]) -> ErrorCode:
    """The first answer that is not about a coordinator that is still loading."""
    passing = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
    found: list[ErrorCode] = []

    def answered() -> bool:
        found.append(attempt())
        return found[-1] not in passing

    wait_until(answered, "the coordinator to load")
    return found[-1]


@pytest.mark.java
def test_apache_kafka_s_own_tool_reads_the_stored_offsets(
    fresh_millstream: Callable[..., MillstreamProcess],
) -> None:
    process = fresh_millstream(settings={"offsets.topic.num.partitions": "1"})
    process.start()
    with RawClient("127.0.0.1", process.port) as client:
        find(client, "g")
        assert commit(client, "g", 42, topic="__consumer_offsets") is ErrorCode.NONE
        deletion = OffsetDeleteRequest(
            group_id="g",
            topics=[
                OffsetDeleteRequestTopic(
                    name="__consumer_offsets", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        )
        assert client.call(deletion, 0).error_code == 0
    process.stop()
    segment = process.data_directory / "__consumer_offsets-0" / "00000000000000000000.log"
    shown = dump_log_segments([segment], "--offsets-decoder", "--print-data-log").stdout
    stored, removed = [line for line in shown.splitlines() if line.startswith("|")]
    key = 'key: {"type":"1","data":{"group":"g","topic":"__consumer_offsets","partition":0}}'
    assert key in stored
    assert '"version":"4","data":{"offset":42,"leaderEpoch":-1,"metadata":"note"' in stored
    assert key in removed
    assert removed.endswith("payload: <DELETE>")
