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
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.millstream_process import MillstreamProcess

pytestmark = pytest.mark.clients

LIMIT_BYTES = 300_000
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


class Sent:
    """What became of records: by offset, and the codes of those that were refused."""

    def __init__(self, bootstrap: str, topic: str, values: list[bytes]) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.refused: list[int] = []
        settings = {"bootstrap.servers": bootstrap, "retries": 0, "acks": "all", "batch.num.messages": 1}
        producer = Producer({**settings, "message.timeout.ms": 10_000, "log_level": 0})
        for value in values:
            producer.produce(topic, value, partition=0, on_delivery=self._delivered)
        assert producer.flush(30) == 0

    def _delivered(self, error: KafkaError | None, message: object) -> None:
        if error is None:
            self.acknowledged[message.offset()] = message.value()  # type: ignore[attr-defined]
        else:
            self.refused.append(error.code())


def read_all(bootstrap: str, topic: str) -> dict[int, bytes]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: dict[int, bytes] = {}
        while True:
            message = consumer.poll(20)
            assert message is not None, "nothing came for 20 seconds"
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
        made.result(20)
    assert health(page)["status"] == "ok"

    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (LIMIT_BYTES, resource.RLIM_INFINITY))
    sent = Sent(servers, "large", [b"%d:" % number + b"x" * 9_000 for number in range(60)])
    assert 0 < len(sent.acknowledged) < 60
    assert set(sent.refused) == {KafkaError.KAFKA_STORAGE_ERROR}
    assert health(page) == {"http": 503, "status": "degraded", "node": 1, "ready": True, "offline_partitions": 1}
    assert read_all(servers, "large") == sent.acknowledged
    assert len(Sent(servers, "small", [b"still served"]).acknowledged) == 1

    # Space alone does not bring it back, and neither does a change of its settings; reads go on.
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, UNLIMITED)
    for altered in admin.incremental_alter_configs([retention("large", "86400000")]).values():
        altered.result(20)
    assert Sent(servers, "large", [b"too early"]).refused == [KafkaError.KAFKA_STORAGE_ERROR]
    assert read_all(servers, "large") == sent.acknowledged

    assert broker.log_tail(1 << 20).count("a partition is offline") == 1
    assert broker.stop() == 0
    broker.start()
    assert read_all(broker.bootstrap_servers, "large") == sent.acknowledged
    after = Sent(broker.bootstrap_servers, "large", [b"healed"])
    assert list(after.acknowledged) == [len(sent.acknowledged)]


def test_where_no_file_can_grow_the_node_still_serves_what_it_has(
    fresh_millstream: Callable[..., MillstreamProcess],
) -> None:
    """The metadata log cannot grow either: a change of it is refused with its reason, and nothing else happens."""
    broker = fresh_millstream()
    broker.start()
    servers = broker.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for made in admin.create_topics([NewTopic("before", 1, 1)]).values():
        made.result(20)
    sent = Sent(servers, "before", [b"1", b"2"])

    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    for made in admin.create_topics([NewTopic("refused", 1, 1)], request_timeout=10).values():
        with pytest.raises(Exception, match="KAFKA_STORAGE_ERROR"):
            made.result(20)
    assert read_all(servers, "before") == sent.acknowledged

    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, UNLIMITED)
    for made in admin.create_topics([NewTopic("after", 1, 1)]).values():
        made.result(20)
    wait_until(lambda: "after" in admin.list_topics(timeout=10).topics, "the topic")
    assert "refused" not in admin.list_topics(timeout=10).topics
    assert len(Sent(servers, "after", [b"3"]).acknowledged) == 1
    assert broker.stop() == 0
