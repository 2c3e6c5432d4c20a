"""aiokafka, each call on an event loop of the adapter's own."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import BrokerResponseError, KafkaError, for_code

from millstream.protocol.errors import ErrorCode
from tests.clients.adapters.contract import Ability, Acks, Client, Codec, Read, Refused

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping, Sequence

    from tests.support.batches import Record

TIMEOUT_S = 20
T = TypeVar("T")


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except BrokerResponseError as failure:
        raise Refused(ErrorCode(failure.errno).name, str(failure)) from failure
    except KafkaError as failure:
        raise Refused(type(failure).__name__, str(failure)) from failure


class AioKafka(Client):
    name = "aiokafka"
    # Its AlterConfigs replaces all of a topic's configs: fine for a topic with one.
    can = frozenset(Ability) - {Ability.YOUNGER_ERRORS}

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with refusals():
            return self._loop.run_until_complete(asyncio.wait_for(work, TIMEOUT_S * 2))

    def _administer(self, call: str, *arguments: Any) -> Any:
        async def work() -> Any:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
            await admin.start()
            try:
                return await getattr(admin, call)(*arguments)
            finally:
                await admin.close()

        return self._run(work())

    def partitions(self, topic: str) -> int:
        # Asking for one topic would make it, where the broker makes topics on demand.
        if topic not in self._administer("list_topics"):
            raise Refused("UNKNOWN_TOPIC_OR_PARTITION")
        (described,) = self._administer("describe_topics", [topic])
        _raise_for(described["error_code"])
        return len(described["partitions"])

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replicas: int = 1
    ) -> None:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, topic_configs=dict(configs or {}))
        answer = self._administer("create_topics", [new])
        _raise_for(answer.topic_errors[0][1])

    def grow(self, topic: str, partitions: int) -> None:
        answer = self._administer("create_partitions", {topic: NewPartitions(partitions)})
        _raise_for(answer.topic_errors[0][1])

    def delete_topic(self, topic: str) -> None:
        answer = self._administer("delete_topics", [topic])
        _raise_for(answer.topic_error_codes[0][1])

    def configs(self, topic: str) -> dict[str, str | None]:
        (answer,) = self._administer("describe_configs", [ConfigResource(ConfigResourceType.TOPIC, topic)])
        error_code, _, _, _, entries = answer.resources[0][:5]
        _raise_for(error_code)
        return {entry[0]: entry[1] for entry in entries}

    def set_config(self, topic: str, name: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={name: value})
        (answer,) = self._administer("alter_configs", [resource])
        _raise_for(answer.resources[0][0])

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        wanted = {TopicPartition(topic, partition): RecordsToDelete(before_offset=before_offset)}
        self._administer("delete_records", wanted)

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
        async def work() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap_servers,
                acks=acks if acks == "all" else int(acks),
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                max_request_size=50_000_000,
                request_timeout_ms=10_000,
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        headers=list(record.headers),
                        partition=partition,
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in records
                ]
                await asyncio.gather(*sent)
            finally:
                await producer.stop()

        self._run(work())

    def _with_consumer(self, use: Any) -> Any:
        async def work() -> Any:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self.bootstrap_servers, group_id=None, auto_offset_reset="none"
            )
            await consumer.start()
            try:
                return await use(consumer)
            finally:
                await consumer.stop()

        return self._run(work())

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Read]:
        place = TopicPartition(topic, partition)

        async def use(consumer: Any) -> list[Read]:
            consumer.assign([place])
            consumer.seek(place, offset)
            reads: list[Read] = []
            while len(reads) < count:
                polled = await consumer.getmany(place, timeout_ms=TIMEOUT_S * 1000, max_records=count - len(reads))
                if not polled:
                    break
                reads += [
                    Read(each.partition, each.offset, each.key, each.value, tuple(each.headers), each.timestamp)
                    for each in polled[place]
                ]
            return reads

        return self._with_consumer(use)  # type: ignore[no-any-return]

    def first_and_next_offset(self, topic: str, partition: int) -> tuple[int, int]:
        place = TopicPartition(topic, partition)

        async def use(consumer: Any) -> tuple[int, int]:
            first = await consumer.beginning_offsets([place])
            following = await consumer.end_offsets([place])
            return first[place], following[place]

        return self._with_consumer(use)  # type: ignore[no-any-return]

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        place = TopicPartition(topic, partition)

        async def use(consumer: Any) -> int:
            return int((await consumer.offsets_for_times({place: timestamp_ms}))[place].offset)

        return self._with_consumer(use)  # type: ignore[no-any-return]


def _raise_for(error_code: int) -> None:
    if error_code:
        raise Refused(ErrorCode(error_code).name, for_code(error_code).__name__)
