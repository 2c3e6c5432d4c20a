"""A member of a group with aiokafka."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from tests.clients.members.saying import Arguments, Voice, stop_event


class Listener(ConsumerRebalanceListener):
    heard_of_group = False

    async def on_partitions_assigned(self, assigned: object) -> None:
        self.heard_of_group = True

    async def on_partitions_revoked(self, revoked: object) -> None:
        pass


async def main() -> None:
    given, voice, stop = Arguments.given(), Voice(), stop_event()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=given.servers,
        group_id=given.group,
        group_instance_id=given.instance_id,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
        auto_commit_interval_ms=200,
        metadata_max_age_ms=500,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    await consumer.start()
    listener = Listener()
    if given.pattern is not None:
        consumer.subscribe(pattern=given.pattern, listener=listener)
    else:
        consumer.subscribe(given.topics, listener=listener)
    while not stop.is_set():
        polled = await consumer.getmany(timeout_ms=100)
        if listener.heard_of_group:
            voice.owns([(place.topic, place.partition) for place in consumer.assignment()])
        for records in polled.values():
            for record in records:
                voice.read(record.topic, record.partition, record.offset, record.value)
    await consumer.stop()


asyncio.run(main())
