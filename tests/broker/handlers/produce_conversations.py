"""Conversations about Produce: what is refused and how, and what a producer hears that sends a batch again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cramjam
from tests.broker.handlers.data_conversations import producer_id
from tests.support.batches import ZSTD, Record, batch_of, encode_records, seal

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.protocol.uuid import Uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.broker.handlers.conversations import Talk

LONG_AGO_MS = 5_000
FAR_AHEAD_MS = 1 << 45
ANY_TIME = str((1 << 63) - 1)


class Producing:
    """Puts batches to partition 0 of a topic, and remembers the partition's part of the answer."""

    def __init__(self, talk: Talk, short: str, **settings: str) -> None:
        self.talk = talk
        self.short = short
        configs = [CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in settings.items()]
        wanted = CreatableTopic(
            name=talk.name(short), num_partitions=1, replication_factor=1, assignments=[], configs=configs
        )
        talk.client.call(CreateTopicsRequest(topics=[wanted]), 7)
        self.id = talk.topic(short)
        # A broker of Apache Kafka's may tell of a topic a moment before it leads it.
        unready = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        talk.until(lambda: self.send(batch_of(Record(b"", b"key"))).error_code not in unready, "the topic to be led")

    def send(self, records: bytes | None, version: int = 12, **fields: Any) -> Any:
        data = PartitionProduceData(index=fields.pop("index", 0), records=records)
        name = fields.pop("name", self.talk.name(self.short))
        topic = TopicProduceData(name=name, topic_id=fields.pop("topic_id", self.id), partition_data=[data])
        fields = {"transactional_id": None, "acks": -1, "timeout_ms": 5000} | fields
        request = ProduceRequest(**fields, topic_data=[topic])
        return self.talk.client.call(request, version).responses[0].partition_responses[0]

    def ask(self, label: str, records: bytes | None, version: int = 12, **fields: Any) -> Any:
        answer = self.send(records, version, **fields)
        heard = self.talk._plain(answer)
        # Sentences are our own, that there is one is not.
        heard["record_errors"] = [each.batch_index for each in answer.record_errors]
        self.talk.heard[label] = heard
        return answer


def batches_sent_again(talk: Talk) -> None:
    for kind in ("CreateTime", "LogAppendTime"):
        topic = Producing(talk, kind.lower(), message_timestamp_type=kind)
        producer = producer_id(talk)

        def batch(sequence: int, count: int = 2, epoch: int = 0, identity: int = producer.producer_id) -> bytes:
            records = [Record(b"value", timestamp_ms=4000 + number) for number in range(count)]
            return batch_of(*records, producer_id=identity, producer_epoch=epoch, base_sequence=sequence)

        times: dict[str, int] = {}
        for label, records in (
            ("first", batch(0)),
            ("first again", batch(0)),
            ("second", batch(2)),
            ("first once more", batch(0)),
            ("a gap", batch(9)),
            ("within a batch", batch(1)),
            ("another count", batch(0, 3)),
            *((f"number {number}", batch(number * 2)) for number in range(2, 7)),
            ("too long ago", batch(0)),
            ("new epoch, not from 0", batch(14, epoch=1)),
            ("new epoch", batch(0, epoch=1)),
            ("old epoch", batch(14)),
            ("unknown producer, not from 0", batch(5, identity=producer.producer_id + 1_000_000)),
        ):
            times[label] = topic.ask(f"{kind}: {label}", records).log_append_time_ms
            if times[label] > 10_000:
                talk.heard[f"{kind}: {label}"]["log_append_time_ms"] = "now"
        talk.heard[f"{kind}: again, with the first's time"] = times["first again"] == times["first"]


def refused_batches(talk: Talk) -> None:
    bounds = {"message_timestamp_before_max_ms": "1000", "message_timestamp_after_max_ms": ANY_TIME}
    plain = Producing(talk, "plain", max_message_bytes="1000", **bounds)
    now_ms = FAR_AHEAD_MS  # nobody's clock gets there, so the bound before it never moves over it
    good = batch_of(Record(b"value", timestamp_ms=now_ms))
    for version in (3, 7, 8, 9, 12):
        plain.ask(f"good, version {version}", good, version)
    plain.ask("good, by id", good, 13, name="")
    for version in (3, 7, 8, 12):
        plain.ask(f"too large, version {version}", batch_of(Record(b"v" * 1000, timestamp_ms=now_ms)), version)
    old = [Record(b"value", timestamp_ms=now_ms), Record(b"old", timestamp_ms=LONG_AGO_MS)]
    for version in (7, 8, 12):
        plain.ask(f"too old, version {version}", batch_of(*old), version)
    plain.ask("all too old", batch_of(Record(b"a", timestamp_ms=1), Record(b"b", timestamp_ms=2)))
    plain.ask("two batches", good + good)
    plain.ask("wrong crc", good[:-1] + b"x")
    plain.ask("cut", good[:-3])
    plain.ask("nothing", b"")
    plain.ask("no such partition", good, index=7)
    plain.ask("no such topic", good, name=talk.name("nope"))
    plain.ask("no such id", good, 13, name="", topic_id=Uuid(b"y" * 16))
    plain.ask("acks=2", good, acks=2)
    plain.ask("acks=1", good, acks=1)
    for version in (6, 7):
        payload = bytes(cramjam.zstd.compress(encode_records([Record(b"v", timestamp_ms=now_ms)])))
        plain.ask(f"zstd, version {version}", seal(payload, 1, codec=ZSTD, base_timestamp_ms=now_ms), version)

    ahead = Producing(talk, "ahead", message_timestamp_after_max_ms="1000")
    ahead.ask("too far ahead", batch_of(Record(b"value", timestamp_ms=now_ms)))

    compacted = Producing(talk, "compacted", cleanup_policy="compact")
    keyless = [Record(b"value", key) for key in (b"a", None, b"c", None)]
    for version in (7, 8, 12):
        compacted.ask(f"without a key, version {version}", batch_of(*keyless), version)
    compacted.ask("an empty key", batch_of(Record(b"value", b"")))


PRODUCING: tuple[Callable[[Talk], None], ...] = (batches_sent_again, refused_batches)
