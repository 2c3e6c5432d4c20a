"""kafka-python 3."""

from __future__ import annotations

import time
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from millstream.protocol.errors import ErrorCode
from tests.clients.adapters.contract import Acks, Client, Codec, Read, Refused

# kafka-python reads its schemas in a way that newer Pythons warn about; here a warning is an error.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
    from kafka.errors import BrokerResponseError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.support.batches import Record

TIMEOUT_S = 20


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except BrokerResponseError as failure:
        raise Refused(ErrorCode(failure.errno).name, str(failure)) from failure
    except KafkaError as failure:
        raise Refused(type(failure).__name__, str(failure)) from failure


class KafkaPython(Client):
    name = "kafka-python"
    # The other codecs need packages of their own.
    codecs = frozenset[Codec]({"none", "gzip"})

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._admin_client: Any = None

    @property
    def _admin(self) -> Any:
        if self._admin_client is None:
            self._admin_client = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        return self._admin_client

    def close(self) -> None:
        if self._admin_client is not None:
            self._admin_client.close()

    def partitions(self, topic: str) -> int:
        with refusals():
            (described,) = self._admin.describe_topics([topic])
        if described["error_code"]:
            raise Refused(ErrorCode(described["error_code"]).name)
        return len(described["partitions"])

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replicas: int = 1
    ) -> None:
        new = NewTopic(
            name=topic, num_partitions=partitions, replication_factor=replicas, topic_configs=dict(configs or {})
        )
        with refusals():
            self._admin.create_topics([new], timeout_ms=TIMEOUT_S * 1000)

    def grow(self, topic: str, partitions: int) -> None:
        with refusals():
            self._admin.create_partitions({topic: NewPartitions(total_count=partitions)})

    def delete_topic(self, topic: str) -> None:
        with refusals():
            self._admin.delete_topics([topic])

    def configs(self, topic: str) -> dict[str, str | None]:
        with refusals():
            found = self._admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
        return {name: entry["value"] for name, entry in found["topic"][topic].items()}

    def set_config(self, topic: str, name: str, value: str) -> None:
        with refusals():
            answer = self._admin.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})], raise_on_unknown=False
            )
        # It returns refusals as text, "[Error 40] …".
        outcome = answer["topic"][topic]
        if outcome != "OK":
            raise Refused(ErrorCode(int(outcome.split("]")[0].removeprefix("[Error "))).name, outcome)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        with refusals():
            self._admin.delete_records({TopicPartition(topic, partition): before_offset})

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        partition: int | None = None,
        acks: Acks = "all",
        codec: Codec = "none",
        idempotent: bool = False,
    ) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap_servers,
            acks=acks if acks == "all" else int(acks),
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            max_request_size=50_000_000,
            delivery_timeout_ms=TIMEOUT_S * 1000,
            request_timeout_ms=10_000,
        )
        try:
            with refusals():
                sent = [
                    producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        headers=list(record.headers),
                        partition=partition,
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in records
                ]
                for future in sent:
                    future.get(TIMEOUT_S)
        finally:
            producer.close()

    def _consumer(self) -> Any:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap_servers,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
        )

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Read]:
        consumer = self._consumer()
        place = TopicPartition(topic, partition)
        reads: list[Read] = []
        deadline = time.monotonic() + TIMEOUT_S
        try:
            with refusals():
                consumer.assign([place])
                consumer.seek(place, offset)
                while len(reads) < count and time.monotonic() < deadline:
                    polled = consumer.poll(timeout_ms=1000, max_records=count - len(reads))
                    reads += [
                        Read(each.partition, each.offset, each.key, each.value, tuple(each.headers), each.timestamp)
                        for each in polled.get(place, ())
                    ]
        finally:
            consumer.close()
        return reads

    def first_and_next_offset(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self._consumer()
        place = TopicPartition(topic, partition)
        try:
            return consumer.beginning_offsets([place])[place], consumer.end_offsets([place])[place]
        finally:
            consumer.close()

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        consumer = self._consumer()
        place = TopicPartition(topic, partition)
        try:
            return int(consumer.offsets_for_times({place: timestamp_ms})[place].offset)
        finally:
            consumer.close()
