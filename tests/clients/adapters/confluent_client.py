"""confluent-kafka: librdkafka from Python."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from millstream.protocol.errors import ErrorCode
from tests.clients.adapters.contract import Acks, Client, Codec, Read, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.batches import Record

TIMEOUT_S = 20


def refusal(error: KafkaError) -> Refused:
    # librdkafka's own errors are below -1 and have names of their own.
    code = error.code()
    name = ErrorCode(code).name if code >= -1 else error.name()
    return Refused(name, error.str())


def settled(future: Any) -> Any:
    try:
        return future.result(TIMEOUT_S)
    except KafkaException as failure:
        raise refusal(failure.args[0]) from failure


class Confluent(Client):
    name = "confluent-kafka"

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        # What librdkafka prints by itself when a broker goes away would only hide what failed.
        self._common = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
        self._admin = AdminClient(self._common)

    def partitions(self, topic: str) -> int:
        described = self._admin.describe_topics(TopicCollection([topic]))[topic]
        return len(settled(described).partitions)

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replicas: int = 1
    ) -> None:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=dict(configs or {}))
        settled(self._admin.create_topics([new])[topic])

    def grow(self, topic: str, partitions: int) -> None:
        settled(self._admin.create_partitions([NewPartitions(topic, partitions)])[topic])

    def delete_topic(self, topic: str) -> None:
        settled(self._admin.delete_topics([topic])[topic])

    def configs(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = settled(self._admin.describe_configs([resource])[resource])
        return {name: entry.value for name, entry in entries.items()}

    def set_config(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        settled(self._admin.incremental_alter_configs([resource])[resource])

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        place = TopicPartition(topic, partition, before_offset)
        settled(self._admin.delete_records([place])[place])

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
        producer = Producer(
            self._common
            | {
                "acks": acks,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "partitioner": "murmur2_random",
                "message.max.bytes": 50_000_000,
                "message.timeout.ms": TIMEOUT_S * 1000,
            }
        )
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failures.append(error)

        where = {} if partition is None else {"partition": partition}
        for record in records:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                timestamp=record.timestamp_ms,
                on_delivery=delivered,
                **where,
            )
        assert producer.flush(TIMEOUT_S) == 0, "not all records were answered"
        if failures:
            raise refusal(failures[0])

    def _consumer(self) -> Consumer:
        return Consumer(self._common | {"group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "error"})

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Read]:
        consumer = self._consumer()
        consumer.assign([TopicPartition(topic, partition, offset)])
        reads: list[Read] = []
        deadline = time.monotonic() + TIMEOUT_S
        try:
            while len(reads) < count and time.monotonic() < deadline:
                for message in consumer.consume(count - len(reads), timeout=1):
                    if (error := message.error()) is not None:
                        raise refusal(error)
                    headers = tuple((name, value) for name, value in message.headers() or ())
                    stamp = message.timestamp()[1]
                    read = Read(message.partition(), message.offset(), message.key(), message.value(), headers, stamp)
                    reads.append(read)
        finally:
            consumer.close()
        return reads

    def first_and_next_offset(self, topic: str, partition: int) -> tuple[int, int]:
        consumer = self._consumer()
        try:
            first, following = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
        finally:
            consumer.close()
        return first, following

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        consumer = self._consumer()
        try:
            found = consumer.offsets_for_times([TopicPartition(topic, partition, timestamp_ms)], timeout=TIMEOUT_S)
        finally:
            consumer.close()
        return int(found[0].offset)
