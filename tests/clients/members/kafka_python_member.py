"""A member of a group with kafka-python."""

from __future__ import annotations

from kafka import KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaConnectionError

from tests.clients.members.saying import Arguments, Voice, stop_event


class Listener(ConsumerRebalanceListener):
    heard_of_group = False

    def on_partitions_assigned(self, assigned: object) -> None:
        self.heard_of_group = True

    def on_partitions_revoked(self, revoked: object) -> None:
        pass


def assignors(strategy: str) -> list[object]:
    if strategy == "cooperative-sticky":
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

        return [CooperativeStickyAssignor]
    return [RangePartitionAssignor]


def main() -> None:
    given, voice, stop = Arguments.given(), Voice(), stop_event()
    consumer = KafkaConsumer(
        bootstrap_servers=given.servers,
        group_id=given.group,
        group_instance_id=given.instance_id,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
        auto_commit_interval_ms=200,
        metadata_max_age_ms=500,
        partition_assignment_strategy=assignors(given.strategy),
    )
    listener = Listener()
    if given.pattern is not None:
        consumer.subscribe(pattern=given.pattern, listener=listener)
    else:
        consumer.subscribe(given.topics, listener=listener)
    while not stop.is_set():
        try:
            # Version 3.0 forgets a rejoin that a poll's timeout interrupts, so this one is not short.
            polled = consumer.poll(timeout_ms=2_000)
        except KafkaConnectionError:
            # It looked for the coordinator while no broker was there, Apache Kafka or another, and gives up by this.
            continue
        if listener.heard_of_group:
            voice.owns([(place.topic, place.partition) for place in consumer.assignment()])
        for records in polled.values():
            for record in records:
                voice.read(record.topic, record.partition, record.offset, record.value)
    consumer.close()


main()
