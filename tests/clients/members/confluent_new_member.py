"""A member of a group with confluent-kafka, by the new consumer protocol: timeouts and assignors are the broker's."""

from __future__ import annotations

from confluent_kafka import Consumer

from tests.clients.members.saying import Arguments, Voice, stop_event


def main() -> None:
    given, voice, stop = Arguments.given(), Voice(), stop_event()
    settings = {
        "bootstrap.servers": given.servers,
        "group.id": given.group,
        "group.protocol": "consumer",
        "group.remote.assignor": given.strategy,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 200,
        "topic.metadata.refresh.interval.ms": 500,
    }
    if given.instance_id is not None:
        settings["group.instance.id"] = given.instance_id
    consumer = Consumer(settings)
    consumer.subscribe(given.topics)
    polls = 0
    while not stop.is_set():
        message = consumer.poll(0.1)
        polls += 1
        # Who is given nothing is told nothing: after a while silence is an answer.
        places = [(place.topic, place.partition) for place in consumer.assignment()]
        if places or polls > 20:
            voice.owns(places)
        if message is not None and message.error() is None:
            voice.read(message.topic(), message.partition(), message.offset(), message.value())
    consumer.close()


main()
