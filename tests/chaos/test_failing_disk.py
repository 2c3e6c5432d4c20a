"""A real broker process whose files cannot grow any more: refusals, not losses, and a restart heals it.

The limit is the kernel's on the size of a file (RLIMIT_FSIZE), which can be set on a running process and takes no
privileges. Writes beyond it fail half-way, as on a full disk.
"""

from __future__ import annotations

import json
import resource
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.millstream_process import MillstreamProcess

pytestmark = pytest.mark.clients

LIMIT_BYTES = 300_000
# What librdkafka says of its own accord, for lack of an answer.
NOT_FROM_THE_BROKER = (KafkaError._TRANSPORT, KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT)
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


class Sent:
    """What became of records: by offset, the codes of those that were refused, and those that nobody can tell of.

    A record whose connection broke (a busy machine is enough) may have been written or not: it says nothing.
    """

    def __init__(self, bootstrap: str, topic: str, values: list[bytes]) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.refused: list[int] = []
        self.unknown: list[bytes] = []
        settings = {"bootstrap.servers": bootstrap, "retries": 0, "acks": "all", "batch.num.messages": 1}
        producer = Producer({**settings, "message.timeout.ms": 30_000, "log_level": 0})
        for value in values:
            producer.produce(topic, value, partition=0, on_delivery=self._delivered)
        assert producer.flush(60) == 0

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged[message.offset()] = message.value()
        elif error.code() in NOT_FROM_THE_BROKER:
            self.unknown.append(message.value())
        else:
            self.refused.append(error.code())

    def agrees_with(self, found: dict[int, bytes]) -> bool:
        """Whether a log holds all that was acknowledged, and nothing else but what nobody can tell of."""
        others = [value for offset, value in found.items() if self.acknowledged.get(offset) != value]
        return self.acknowledged.items() <= found.items() and all(value in self.unknown for value in others)


def answer_to(bootstrap: str, topic: str, value: bytes) -> Sent:
    """Send one record, again and again until the broker itself says what it thinks of it."""

    def answered() -> Sent | None:
        sent = Sent(bootstrap, topic, [value])
        return None if sent.unknown else sent

    return wait_until(answered, f"an answer to {value!r}", within_s=120)


def read_all(bootstrap: str, topic: str) -> dict[int, bytes]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: dict[int, bytes] = {}
        while True:
            message = consumer.poll(60)
            assert message is not None, "nothing came for a minute"
            if message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF:
                return found
            assert message.error() is None
            found[message.offset()] = message.value()
    finally:
        consumer.close()


def retention(topic: str, retention_ms: str) -> ConfigResource:
    entry = ConfigEntry("retention.ms", retention_ms, incremental_operation=AlterConfigOpType.SET)
    return ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])


def health(page: str) -> dict[str, object]:
    try:
        with urllib.request.urlopen(page) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as refusal:
        return {"http": refusal.code, **json.load(refusal)}


def test_a_partition_that_cannot_grow_is_read_on_and_heals(
    fresh_millstream: Callable[..., MillstreamProcess],
) -> None:
    broker = fresh_millstream(arguments=["--metrics", "127.0.0.1:0"])
    broker.start()
    servers = broker.bootstrap_servers
    page = broker.stdout().partition("metrics=")[2].strip().replace("/metrics", "/health")
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for made in admin.create_topics([NewTopic("large", 1, 1), NewTopic("small", 1, 1)]).values():
        made.result(60)
    assert health(page)["status"] == "ok"

    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (LIMIT_BYTES, resource.RLIM_INFINITY))
    sent = Sent(servers, "large", [b"%d:" % number + b"x" * 9_000 for number in range(60)])
    assert 0 < len(sent.acknowledged) < 60
    assert set(sent.refused) == {KafkaError.KAFKA_STORAGE_ERROR}
    assert health(page) == {"http": 503, "status": "degraded", "node": 1, "ready": True, "offline_partitions": 1}
    stored = read_all(servers, "large")
    assert sent.agrees_with(stored)
    assert len(answer_to(servers, "small", b"still served").acknowledged) == 1

    # Space alone does not bring it back, and neither does a change of its settings; reads go on.
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, UNLIMITED)
    for altered in admin.incremental_alter_configs([retention("large", "86400000")]).values():
        altered.result(60)
    assert answer_to(servers, "large", b"too early").refused == [KafkaError.KAFKA_STORAGE_ERROR]
    assert read_all(servers, "large") == stored

    assert broker.log_tail(1 << 20).count("a partition is offline") == 1
    assert broker.stop() == 0
    broker.start()
    assert read_all(broker.bootstrap_servers, "large") == stored
    after = answer_to(broker.bootstrap_servers, "large", b"healed")
    assert min(after.acknowledged) >= len(stored)


def test_where_no_file_can_grow_the_node_still_serves_what_it_has(
    fresh_millstream: Callable[..., MillstreamProcess],
) -> None:
    """The metadata log cannot grow either: a change of it is refused with its reason, and nothing else happens."""
    broker = fresh_millstream()
    broker.start()
    servers = broker.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for made in admin.create_topics([NewTopic("before", 1, 1)]).values():
        made.result(60)
    assert answer_to(servers, "before", b"1").acknowledged
    stored = read_all(servers, "before")

    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    for made in admin.create_topics([NewTopic("refused", 1, 1)], request_timeout=10).values():
        with pytest.raises(Exception, match="KAFKA_STORAGE_ERROR"):
            made.result(60)
    assert read_all(servers, "before") == stored

    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, UNLIMITED)
    for made in admin.create_topics([NewTopic("after", 1, 1)]).values():
        made.result(60)
    wait_until(lambda: "after" in admin.list_topics(timeout=60).topics, "the topic")
    assert "refused" not in admin.list_topics(timeout=60).topics
    assert len(answer_to(servers, "after", b"3").acknowledged) == 1
    assert broker.stop() == 0
