"""What is tried in a cluster of two nodes of different kinds: node 1 is the controller and a broker, node 2 a broker.

Each step says in its docstring what it claims, and fails if that is not so. `python -m tests.mixed` runs all of them
and tells what was said on the wire meanwhile.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from millstream.client.admin.cluster import describe_cluster, update_features
from millstream.client.admin.partitions import alter_reassignments, elect_leaders, list_reassignments
from millstream.client.admin.topics import NewTopic, create_topics, describe_topics
from millstream.client.errors import ClientError, Refusal
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from millstream.client.admin.topics import DescribedPartition
    from millstream.client.sync import SyncClient
    from tests.mixed.nodes import MixedCluster

TOPIC = "mixed"
MOVED = "moved"
GROUP = "readers"
TRANSACTIONS = "__transaction_state"
OFFSETS = "__consumer_offsets"
FILE = "00000000000000000000.log"
WITHIN_S = 120
LEVELS = (
    ("transaction.version", 1, 2),
    ("group.version", 0, 1),
    ("share.version", 0, 1),
    ("streams.version", 0, 1),
    ("metadata.version", 29, 30),
)


class Scene:
    """A cluster that runs, and a client for its administration."""

    def __init__(self, cluster: MixedCluster, client: SyncClient) -> None:
        self.cluster = cluster
        self.client = client

    # --- looking

    def partition(self, topic: str, index: int) -> DescribedPartition | None:
        """As the cluster describes it; None while whoever is asked does not know it."""
        try:
            found = self.client.run(describe_topics, [topic])[topic]
        except ClientError:
            return None
        return None if isinstance(found, Exception) else found.partitions[index]

    def is_in_sync(self, topic: str, index: int, replicas: Iterable[int]) -> bool:
        found = self.partition(topic, index)
        return found is not None and sorted(found.isr) == sorted(replicas)

    def is_led_by(self, topic: str, index: int, node: int) -> bool:
        found = self.partition(topic, index)
        return found is not None and found.leader_id == node

    def stored(self, node: int, topic: str, index: int) -> bytes:
        """A replica's first segment, in whichever of the node's directories it is."""
        places = self.cluster.log_directories(node)
        files = [place / f"{topic}-{index}" / FILE for place in places]
        return next((file.read_bytes() for file in files if file.exists()), b"")

    def are_same(self, topic: str, index: int) -> bool:
        found = {self.stored(node, topic, index) for node in (1, 2)}
        return len(found) == 1 and b"" not in found

    # --- doing

    def create(self, topic: str, assignments: dict[int, tuple[int, ...]]) -> None:
        def attempt() -> bool:
            created = self.trying(create_topics, [NewTopic(topic, assignments=assignments)])
            return created is not None and (
                not isinstance(created[topic], Exception) or "exists" in str(created[topic]).lower()
            )

        wait_until(attempt, f"{topic} to be created", within_s=WITHIN_S, every_s=0.2)

    def trying(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The result, or None where the cluster is not there yet."""
        try:
            return self.client.run(call, *arguments)
        except ClientError:
            return None

    def write(self, topic: str, index: int, count: int = 20) -> None:
        """With acks=all and idempotence, and every record acknowledged."""
        producer = Producer(self._options(**{"enable.idempotence": True}))
        failed: list[object] = []
        for number in range(count):
            producer.produce(
                topic, b"value %d" % number, partition=index, on_delivery=lambda error, _: failed.append(error)
            )
        assert producer.flush(WITHIN_S) == 0
        assert failed == [None] * count

    def producer(self, transactional_id: str) -> Producer:
        producer = Producer(self._options(**{"transactional.id": transactional_id}))
        producer.init_transactions(WITHIN_S)
        return producer

    def read(self, topic: str, indexes: Iterable[int], group: str = GROUP) -> list[bytes]:
        """All committed records of these partitions, read by a member of a group, whose offsets are committed."""
        consumer = Consumer(
            self._options(
                **{
                    "group.id": group,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                }
            )
        )
        found: list[bytes] = []
        waiting = set(indexes)
        consumer.assign([TopicPartition(topic, index, 0) for index in waiting])

        def poll() -> bool:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append(message.value())
            elif message is not None and message.error().name() == "_PARTITION_EOF":
                waiting.discard(message.partition())
            return not waiting

        try:
            wait_until(poll, f"the end of {topic}", within_s=WITHIN_S)
            wait_until(lambda: _is_committed(consumer), "the offsets to be committed", within_s=WITHIN_S, every_s=0.2)
        finally:
            consumer.close()
        return found

    def _options(self, **more: Any) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "socket.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 500,
            **more,
        }

    def until_in_sync(self, topic: str, index: int) -> None:
        wait_until(lambda: self.is_in_sync(topic, index, (1, 2)), f"{topic} in sync", within_s=WITHIN_S, every_s=0.1)

    def move_leader(self, topic: str, index: int, node: int) -> None:
        """Make the node the first replica, and elect it."""
        others = [each for each in (1, 2) if each != node]
        self.reassign(topic, index, [node, *others])
        self.until_in_sync(topic, index)

        def attempt() -> bool:
            self.trying(elect_leaders, [(topic, index)])
            return self.is_led_by(topic, index, node)

        wait_until(attempt, f"node {node} to lead {topic}", within_s=WITHIN_S, every_s=0.2)

    def reassign(self, topic: str, index: int, replicas: list[int]) -> None:
        def done() -> bool:
            found = self.partition(topic, index)
            moving = self.trying(list_reassignments)
            return found is not None and list(found.replicas) == replicas and moving == {}

        answer = self.client.run(alter_reassignments, {(topic, index): replicas})
        assert answer == {(topic, index): None}
        wait_until(done, f"{topic} to be at {replicas}", within_s=WITHIN_S, every_s=0.1)


def _is_committed(consumer: Consumer) -> bool:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException:
        return False  # The coordinator is on its way.
    return True


def registration(scene: Scene) -> None:
    """Both brokers are part of the cluster, unfenced."""

    def both() -> bool:
        cluster = scene.trying(describe_cluster)
        return cluster is not None and [broker.id for broker in cluster.brokers] == [1, 2]

    wait_until(both, "both brokers", within_s=WITHIN_S, every_s=0.1)


def replication(scene: Scene) -> None:
    """Each follows the other, and the replicas' files are the same bytes."""
    scene.create(TOPIC, {0: (1, 2), 1: (2, 1)})
    for index in (0, 1):
        scene.write(TOPIC, index)
        wait_until(lambda: scene.are_same(TOPIC, index), f"the replicas of {index} to be the same", within_s=WITHIN_S)  # noqa: B023
        scene.until_in_sync(TOPIC, index)


def transactions(scene: Scene) -> None:
    """A transaction is begun with a coordinator of one kind and ended by one of the other, both ways."""
    producer = scene.producer("mover")
    for node in (1, 2, 1):
        producer.begin_transaction()
        for index in (0, 1):
            producer.produce(TOPIC, b"ended by %d" % node, partition=index)
        producer.flush(WITHIN_S)
        scene.move_leader(TRANSACTIONS, 0, node)
        producer.commit_transaction(WITHIN_S)
    producer.begin_transaction()
    producer.produce(TOPIC, b"aborted", partition=0)
    producer.flush(WITHIN_S)
    producer.abort_transaction(WITHIN_S)
    read = scene.read(TOPIC, (0, 1))
    assert sorted(each for each in read if each.startswith(b"ended")) == sorted(
        b"ended by %d" % node for node in (1, 2, 1) for _ in (0, 1)
    )
    assert b"aborted" not in read


def groups(scene: Scene) -> None:
    """What was committed at a coordinator of one kind is known to one of the other."""
    scene.read(TOPIC, (0, 1))
    for node in (2, 1):
        scene.move_leader(OFFSETS, 0, node)
        consumer = Consumer(scene._options(**{"group.id": GROUP}))
        try:
            known = consumer.committed([TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)], timeout=WITHIN_S)
        finally:
            consumer.close()
        assert all(each.offset > 0 for each in known), known


def reassignment(scene: Scene) -> None:
    """A partition moves from the one kind to the other and back, with everything in it."""
    scene.create(MOVED, {0: (1,)})
    scene.write(MOVED, 0)
    before = scene.stored(1, MOVED, 0)
    scene.reassign(MOVED, 0, [2])
    wait_until(lambda: scene.stored(2, MOVED, 0) == before, "the same bytes", within_s=WITHIN_S)
    scene.write(MOVED, 0)
    scene.reassign(MOVED, 0, [1])
    assert len(scene.read(MOVED, (0,))) == 40


def controlled_shutdown(scene: Scene) -> None:
    """A broker that stops hands over what it leads first, and is taken back."""
    scene.move_leader(TOPIC, 1, 2)
    scene.cluster.nodes[2].stop()
    _is_missed_and_comes_back(scene)


def kill(scene: Scene) -> None:
    """A broker that is killed is fenced, and catches up afterwards."""
    scene.move_leader(TOPIC, 1, 2)
    scene.cluster.nodes[2].kill()
    _is_missed_and_comes_back(scene)


def _is_missed_and_comes_back(scene: Scene) -> None:
    """Node 2 is gone: node 1 leads, takes records, and has a follower again with all of them."""
    wait_until(lambda: scene.is_led_by(TOPIC, 1, 1), "node 1 to lead", within_s=WITHIN_S, every_s=0.1)
    scene.write(TOPIC, 1)
    scene.cluster.start(2)
    scene.until_in_sync(TOPIC, 1)
    wait_until(lambda: scene.are_same(TOPIC, 1), "the replicas to be the same", within_s=WITHIN_S)


def snapshot(scene: Scene) -> None:
    """A broker with an empty disk reads a snapshot that the other kind wrote, and copies its replicas again."""
    for number in range(40):
        scene.create(f"filling-{number}", {0: (1,)})
    scene.cluster.nodes[2].kill()
    for place in scene.cluster.log_directories(2):
        shutil.rmtree(place)
    scene.cluster.start(2)
    scene.until_in_sync(TOPIC, 0)
    assert scene.cluster.recorder.of("FetchSnapshot"), "the log was still there from its beginning"


def features(scene: Scene) -> None:
    """Finalized levels go down and up again while both kinds run."""
    for name, low, high in LEVELS:
        for level in (low, high):
            try:
                scene.client.run(update_features, {name: level}, downgrade=level == low)
                print(f"    {name} {level}: done")
            except Refusal as refusal:
                print(f"    {name} {level}: {refusal}")
    scene.write(TOPIC, 0)


ALL: tuple[Callable[[Scene], None], ...] = (
    registration,
    replication,
    transactions,
    groups,
    reassignment,
    controlled_shutdown,
    kill,
    features,
    snapshot,
)
