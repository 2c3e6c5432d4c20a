"""Settings that change while the broker runs take hold at once, the topic's own and the brokers' default alike."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from tests.support.batches import Record, batch_of
from tests.support.waiting import wait_until

from millstream import Broker
from millstream.client.admin.configs import Change, Resource, ResourceKind, alter_configs
from millstream.client.errors import Refusal
from millstream.client.produce import Produced, produce
from millstream.client.sync import SyncClient
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.broker.partition import Partition

TOPIC = "orders"
ITSELF = Resource(ResourceKind.TOPIC, TOPIC)
EVERY_BROKER = Resource(ResourceKind.BROKER, "")


class Scene:
    """A broker with one topic, and a client of it."""

    def __init__(self, broker: Broker, client: SyncClient) -> None:
        self.broker = broker
        self._client = client

    def alter(self, resource: Resource, **settings: str) -> None:
        changes = [Change(name.replace("_", "."), value) for name, value in settings.items()]
        assert list(self._client.run(alter_configs, {resource: changes}).values()) == [None]

    def send(self, value: bytes = b"value", timestamp_ms: int = 1_000) -> Produced:
        batch = batch_of(Record(value, timestamp_ms=timestamp_ms))
        return self._client.run(produce, {(TOPIC, 0): batch})[TOPIC, 0]

    def refusal(self, value: bytes) -> ErrorCode:
        with pytest.raises(Refusal) as refused:
            self.send(value)
        return refused.value.code

    @property
    def partition(self) -> Partition:
        assert self.broker._node is not None
        found = self.broker._node.partitions.get(TOPIC, 0)
        assert found is not None
        return found


@pytest.fixture
def scene() -> Iterator[Scene]:
    settings = {"log.retention.check.interval.ms": 50, "log.cleaner.backoff.ms": 50}
    with Broker(settings=settings) as broker:
        broker.create_topic(TOPIC)
        with SyncClient({"bootstrap.servers": broker.bootstrap_servers}) as client:
            yield Scene(broker, client)


@pytest.mark.parametrize(
    ("resource", "name"), [(ITSELF, "max_message_bytes"), (EVERY_BROKER, "message_max_bytes")], ids=["topic", "brokers"]
)
def test_how_large_a_batch_may_be(scene: Scene, resource: Resource, name: str) -> None:
    scene.send(b"v" * 500)
    scene.alter(resource, **{name: "300"})
    assert scene.refusal(b"v" * 500) == ErrorCode.MESSAGE_TOO_LARGE
    scene.alter(resource, **{name: "1000"})
    scene.send(b"v" * 500)


def test_whose_time_a_record_has(scene: Scene) -> None:
    assert scene.send().log_append_time_ms == -1
    scene.alter(ITSELF, message_timestamp_type="LogAppendTime")
    assert scene.send().log_append_time_ms > 1_000


def test_how_long_records_are_kept(scene: Scene) -> None:
    scene.alter(ITSELF, retention_ms="-1")
    scene.send()
    scene.alter(ITSELF, retention_ms="1000")
    wait_until(lambda: scene.partition.log.start_offset == 1, "the aged segment to go, although it is the active one")


def test_whether_an_acknowledgement_waits_for_the_disk(scene: Scene) -> None:
    scene.send()
    assert scene.partition.log.recovery_point == 0
    scene.alter(ITSELF, flush_messages="1")
    scene.send()
    assert scene.partition.log.recovery_point == 2
    scene.alter(ITSELF, flush_messages="1000")
    scene.send()
    assert scene.partition.log.recovery_point == 2


def test_what_is_compacted_and_when(scene: Scene) -> None:
    scene.alter(ITSELF, cleanup_policy="compact")
    log = scene.partition.log
    node = scene.broker._node
    assert node is not None
    assert log.config.compact
    scene.alter(
        EVERY_BROKER,
        **{"log.cleaner.dedupe.buffer.size": "2097152", "log.cleaner.min.cleanable.ratio": "0.25"},
        log_cleaner_backoff_ms="100",
    )
    assert node.compactor.dedupe_buffer_bytes == 2 << 20
    assert log.config.min_cleanable_dirty_ratio == 0.25


def test_how_many_connections_there_may_be(scene: Scene) -> None:
    place = ("127.0.0.1", scene.broker.port)
    scene.alter(EVERY_BROKER, max_connections_per_ip="1")
    with socket.create_connection(place, 10) as one_too_many:
        assert not _is_served(one_too_many)
    scene.alter(EVERY_BROKER, max_connections_per_ip="100")
    with socket.create_connection(place, 10) as welcome:
        assert _is_served(welcome)


def _is_served(connection: socket.socket) -> bool:
    try:
        # ApiVersions v0 with a correlation id and no client id.
        connection.send(bytes.fromhex("0000000a0012000000000007ffff"))
        return bool(connection.recv(1))
    except ConnectionError:
        return False
