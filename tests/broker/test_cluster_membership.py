"""Brokers of a cluster in one process: they come, go, fall silent, and every one of them takes every request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic
from tests.support.waiting import wait_until

from millstream import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.broker.node import Node

pytestmark = pytest.mark.slow

FAST = {
    "broker.heartbeat.interval.ms": 100,
    "broker.session.timeout.ms": 1500,
    "leader.imbalance.check.interval.seconds": 1,
    "num.partitions": 1,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, settings=FAST) as running:
        yield running


def nodes(cluster: Cluster) -> dict[int, Node]:
    return cluster._nodes


def active(cluster: Cluster) -> int:
    """The number of the active controller, once there is one."""
    return wait_until(
        lambda: next((id_ for id_, node in nodes(cluster).items() if node.controller.is_active), None),
        "an active controller",
        within_s=90,
    )


def address(node: Node) -> str:
    return f"127.0.0.1:{node.port}"


def admin_of(node: Node) -> AdminClient:
    return AdminClient({"bootstrap.servers": address(node), "log_level": 0})


def until_leader(cluster: Cluster, topic: str, wanted: object, partition: int = 0) -> None:
    def reached() -> bool:
        found = [node.image.topics.by_name.get(topic) for node in nodes(cluster).values()]
        leaders = {-1 if each is None else each.partitions[partition].leader for each in found}
        return all(wanted(leader) if callable(wanted) else leader == wanted for leader in leaders)

    wait_until(reached, f"the leader of {topic}", within_s=90)


def until_in_sync(cluster: Cluster, topic: str, count: int) -> None:
    wait_until(
        lambda: all(
            topic in node.image.topics.by_name
            and all(len(partition.isr) == count for partition in node.image.topics.by_name[topic].partitions.values())
            for node in nodes(cluster).values()
        ),
        f"{count} replicas of {topic} in sync",
        within_s=120,
    )


def send(cluster: Cluster, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def read(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "reader",
            "log_level": 0,
            "isolation.level": "read_committed",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(count, 90)
        assert [message.error() for message in messages] == [None] * len(messages)
        return [message.value() or b"" for message in messages]
    finally:
        consumer.close()


def test_every_broker_and_controller_is_registered_everywhere(cluster: Cluster) -> None:
    for node in nodes(cluster).values():
        wait_until(
            lambda node=node: sorted(each.id for each in node.image.brokers.values() if each.active) == [1, 2, 3],  # type: ignore[misc]
            "all brokers",
            within_s=90,
        )
        wait_until(lambda node=node: sorted(node.image.controllers) == [1, 2, 3], "all controllers", within_s=90)  # type: ignore[misc]


def test_an_administrator_may_ask_any_broker(cluster: Cluster) -> None:
    """It sends the request on in an Envelope; what that may say is in handlers/test_envelope.py."""
    for broker_id, node in nodes(cluster).items():
        admin = admin_of(node)
        topic = f"by-{broker_id}"
        admin.create_topics([NewTopic(topic, 2, 3)])[topic].result(90)
        wait_until(lambda topic=topic, node=node: topic in node.image.topics.by_name, "the topic", within_s=90)  # type: ignore[misc]
        admin.create_partitions([NewPartitions(topic, 4)])[topic].result(90)
        setting = ConfigEntry("retention.ms", "1234567", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[setting])
        admin.incremental_alter_configs([resource])[resource].result(90)
        wait_until(
            lambda topic=topic, node=node: node.image.topic_config(topic).get("retention.ms") == "1234567",  # type: ignore[misc]
            "the setting",
            within_s=90,
        )
        assert len(node.image.topics.by_name[topic].partitions) == 4
        with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
            admin.create_topics([NewTopic(topic, 2, 3)])[topic].result(90)
        admin.delete_topics([topic])[topic].result(90)
    for node in nodes(cluster).values():
        wait_until(lambda node=node: "by-3" not in node.image.topics.by_name, "the deletion", within_s=90)  # type: ignore[misc]


def test_topics_are_made_for_whoever_writes_to_them_first(cluster: Cluster) -> None:
    for broker_id, node in nodes(cluster).items():
        topic = f"automatic-{broker_id}"
        producer = Producer({"bootstrap.servers": address(node), "log_level": 0})
        producer.produce(topic, b"first")
        assert producer.flush(90) == 0
        assert len(node.image.topics.by_name[topic].partitions[0].replicas) == 3


def test_a_silent_broker_is_fenced_and_comes_back(cluster: Cluster) -> None:
    silent = next(id_ for id_ in cluster.brokers if id_ != active(cluster))
    topic = cluster.create_topic("silence", partitions=3)
    send(cluster, topic, b"before")
    until_in_sync(cluster, topic, 3)
    partition = next(
        index
        for index, each in nodes(cluster)[1].image.topics.by_name[topic].partitions.items()
        if each.leader == silent
    )
    membership = nodes(cluster)[silent].membership

    async def fall_silent() -> None:
        assert membership._beating is not None
        membership._beating.cancel()

    async def speak_again() -> None:
        membership._beating = nodes(cluster)[silent].loop.create_task(membership._keep_beating())

    cluster._in_thread(fall_silent())
    until_leader(cluster, topic, lambda leader: leader not in (silent, -1), partition)
    assert nodes(cluster)[active(cluster)].image.brokers[silent].fenced
    cluster._in_thread(speak_again())
    wait_until(lambda: nodes(cluster)[silent].image.brokers[silent].active, "its return", within_s=90)
    until_in_sync(cluster, topic, 3)
    until_leader(cluster, topic, silent, partition)  # leadership goes back to the preferred replica by itself


def test_a_stop_hands_over_first_and_a_start_takes_back(cluster: Cluster) -> None:
    topic = cluster.create_topic("restarts", replicas=3)
    send(cluster, topic, b"1")
    until_in_sync(cluster, topic, 3)
    for broker_id in (1, 2, 3):  # the active controller among them
        cluster.stop_broker(broker_id)
        until_leader(cluster, topic, lambda leader, away=broker_id: leader not in (away, -1))
        send(cluster, topic, b"%d" % (broker_id + 1))
        cluster.start_broker(broker_id)
        until_in_sync(cluster, topic, 3)
    assert read(cluster, topic, 4) == [b"1", b"2", b"3", b"4"]


def test_groups_and_transactions_reach_over_brokers(cluster: Cluster) -> None:
    topic = cluster.create_topic("transfers", partitions=6)
    done = cluster.create_topic("done", partitions=1)
    send(cluster, topic, *(b"%d" % number for number in range(60)))
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "mover", "log_level": 0})
    producer.init_transactions(60)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "movers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    moved = 0
    try:
        while moved < 60:
            messages = consumer.consume(20, 90)
            assert messages, f"only {moved} came"
            producer.begin_transaction()
            for message in messages:
                assert message.error() is None
                producer.produce(done, message.value())
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 60
            )
            producer.commit_transaction(60)
            moved += len(messages)
        committed = consumer.committed([TopicPartition(topic, index) for index in range(6)], 90)
        assert sum(each.offset for each in committed if each.offset > 0) == 60
    finally:
        consumer.close()
    assert sorted(map(int, read(cluster, done, 60))) == list(range(60))


def test_an_aborted_transaction_over_all_brokers_is_seen_by_nobody(cluster: Cluster) -> None:
    topic = cluster.create_topic("aborted", partitions=1)
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "undecided", "log_level": 0}
    )
    producer.init_transactions(60)
    for value, commits in ((b"no", False), (b"yes", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        assert producer.flush(90) == 0
        producer.commit_transaction(60) if commits else producer.abort_transaction(60)
    assert read(cluster, topic, 1) == [b"yes"]
