"""A member of a group with confluent-kafka."""

from __future__ import annotations

from confluent_kafka import Consumer

from tests.clients.members.saying import Arguments, Voice, stop_event


def main() -> None:
    given, voice, stop = Arguments.given(), Voice(), stop_event()
    settings = {
        "bootstrap.servers": given.servers,
        "group.id": given.group,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 500,
        "auto.commit.interval.ms": 200,
        "topic.metadata.refresh.interval.ms": 500,
        "partition.assignment.strategy": given.strategy,
    }
    if given.instance_id is not None:
        settings["group.instance.id"] = given.instance_id
    consumer = Consumer(settings)
    heard_of_group = False

    def on_assign(_consumer: Consumer, _partitions: object) -> None:
        nonlocal heard_of_group
        heard_of_group = True

    consumer.subscribe(given.topics, on_assign=on_assign)
    while not stop.is_set():
        message = consumer.poll(0.1)
        if heard_of_group:
            voice.owns([(place.topic, place.partition) for place in consumer.assignment()])
        if message is not None and message.error() is None:
            voice.read(message.topic(), message.partition(), message.offset(), message.value())
    consumer.close()


main()
