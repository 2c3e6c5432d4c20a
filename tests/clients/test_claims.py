"""What every Kafka client may expect of a broker, run through each of them in its own words.

Topics are set up, and what a client wrote is read back, through one reference client, so that a claim about writing
fails for writing and not for something else.
"""

from __future__ import annotations

import time

import pytest

from tests.clients.adapters.contract import Ability, Acks, Client, Codec, Read, Refused
from tests.clients.reference import Reference, java_partition
from tests.clients.selection import every_client, every_client_and_codec
from tests.support.batches import Record
from tests.support.waiting import wait_until

pytestmark = pytest.mark.clients


def words(count: int, stamp_ms: int = 0, size: int = 10) -> list[Record]:
    now_ms = stamp_ms or int(time.time() * 1000)
    return [
        Record(value=b"value-%d" % number + b"." * size, key=b"key-%d" % number, timestamp_ms=now_ms + number)
        for number in range(count)
    ]


def content(reads: list[Read]) -> list[tuple[bytes | None, bytes | None]]:
    return [(read.key, read.value) for read in reads]


def sent(records: list[Record]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records]


# Topics


@every_client(Ability.ADMIN)
def test_a_created_topic_has_the_partitions_it_was_given(client: Client, fresh_name: str) -> None:
    client.create_topic(fresh_name, partitions=5)
    wait_until(lambda: client.partitions(fresh_name) == 5, "five partitions")


@every_client(Ability.ADMIN)
def test_a_topic_grows(client: Client, topic: str) -> None:
    client.grow(topic, 4)
    wait_until(lambda: client.partitions(topic) == 4, "four partitions")


@every_client(Ability.ADMIN)
def test_a_deleted_topic_is_gone_and_its_name_is_free(client: Client, fresh_name: str) -> None:
    client.create_topic(fresh_name)
    client.delete_topic(fresh_name)

    def gone() -> bool:
        try:
            client.partitions(fresh_name)
        except Refused as refused:
            return refused.code == "UNKNOWN_TOPIC_OR_PARTITION"
        return False

    wait_until(gone, "the topic to be gone")
    client.create_topic(fresh_name, partitions=2)
    wait_until(lambda: not gone() and client.partitions(fresh_name) == 2, "the new topic")


@every_client(Ability.ADMIN, Ability.CONFIGS)
def test_configs_given_at_creation_are_described(client: Client, fresh_name: str) -> None:
    client.create_topic(fresh_name, configs={"retention.ms": "1234567", "cleanup.policy": "compact"})
    configs = client.configs(fresh_name)
    assert configs["retention.ms"] == "1234567"
    assert configs["cleanup.policy"] == "compact"
    assert configs["max.message.bytes"] == "1048588", "configs that nobody set are listed with their defaults"


@every_client(Ability.CONFIGS)
def test_a_config_is_changed(client: Client, topic: str) -> None:
    client.set_config(topic, "retention.ms", "7654321")
    wait_until(lambda: client.configs(topic)["retention.ms"] == "7654321", "the new retention")


# Writing


@every_client_and_codec()
def test_what_was_written_with_a_codec_is_read_back(
    client: Client, codec: Codec, topic: str, reference: Reference
) -> None:
    records = words(50, size=200)
    client.produce(topic, records, codec=codec)
    assert content(reference.consume(topic, 0, 0, 50)) == sent(records)


@every_client_and_codec(Ability.CONSUME)
def test_what_the_reference_wrote_with_a_codec_is_read(
    client: Client, codec: Codec, topic: str, reference: Reference
) -> None:
    records = words(50, size=200)
    reference.produce(topic, records, codec=codec)
    assert content(client.consume(topic, 0, 0, 50)) == sent(records)


@every_client()
@pytest.mark.parametrize("acks", ["1", "all"])
def test_an_acknowledged_record_is_there(client: Client, acks: Acks, topic: str, reference: Reference) -> None:
    client.produce(topic, words(3), acks=acks)
    assert reference.first_and_next_offset(topic, 0) == (0, 3)


@every_client(Ability.ACKS_0)
def test_records_sent_without_acknowledgement_arrive(client: Client, topic: str, reference: Reference) -> None:
    client.produce(topic, words(3), acks="0")
    wait_until(lambda: reference.first_and_next_offset(topic, 0) == (0, 3), "three records")


@every_client(Ability.IDEMPOTENCE)
def test_an_idempotent_producer_writes_each_record_once(client: Client, topic: str, reference: Reference) -> None:
    records = words(200)
    client.produce(topic, records, idempotent=True)
    assert reference.first_and_next_offset(topic, 0) == (0, 200)
    assert content(reference.consume(topic, 0, 0, 200)) == sent(records)


@every_client(Ability.HEADERS)
def test_headers_keep_their_order_and_repeat(client: Client, topic: str, reference: Reference) -> None:
    headers = (("trace", b"one"), ("trace", b"two"), ("kind", b"order"))
    client.produce(topic, [Record(b"value", b"key", headers, int(time.time() * 1000))])
    (read,) = reference.consume(topic, 0, 0, 1)
    assert read.headers == headers


@every_client(Ability.CONSUME)
def test_headers_keys_and_nulls_are_read_as_written(client: Client, topic: str, reference: Reference) -> None:
    now_ms = int(time.time() * 1000)
    records = [Record(None, b"deleted", (("why", b"gone"),), now_ms), Record(b"keyless", None, (), now_ms + 1)]
    reference.produce(topic, records)
    first, second = client.consume(topic, 0, 0, 2)
    assert first[:6] == (0, 0, b"deleted", None, (("why", b"gone"),), now_ms)
    assert second[:6] == (0, 1, None, b"keyless", (), now_ms + 1)


@every_client(Ability.SET_TIME)
def test_timestamps_are_kept(client: Client, topic: str, reference: Reference) -> None:
    stamp_ms = int(time.time() * 1000) - 3_600_000
    client.produce(topic, words(3, stamp_ms))
    assert [read.timestamp_ms for read in reference.consume(topic, 0, 0, 3)] == [stamp_ms, stamp_ms + 1, stamp_ms + 2]


@every_client(Ability.BINARY)
def test_any_bytes_survive(client: Client, topic: str, reference: Reference) -> None:
    every_byte = bytes(range(256))
    client.produce(topic, [Record(every_byte, every_byte[::-1], (), int(time.time() * 1000))])
    (read,) = reference.consume(topic, 0, 0, 1)
    assert (read.key, read.value) == (every_byte[::-1], every_byte)


@every_client(Ability.JAVA_PARTITIONER)
def test_a_key_lands_in_the_partition_that_java_chooses(client: Client, fresh_name: str, reference: Reference) -> None:
    reference.create_topic(fresh_name, partitions=6)
    keys = [b"a", b"ab", b"abc", b"abcd", b"orders-17", b"\xc3\xa4", b"a-longer-key-than-the-others"]
    client.produce(fresh_name, [Record(b"v", key, (), int(time.time() * 1000)) for key in keys])
    for partition in range(6):
        expected = [key for key in keys if java_partition(key, 6) == partition]
        assert [read.key for read in reference.consume(fresh_name, partition, 0, len(expected))] == expected


@every_client()
def test_a_topic_is_made_by_writing_to_it(client: Client, fresh_name: str, reference: Reference) -> None:
    client.produce(fresh_name, words(2))
    assert reference.first_and_next_offset(fresh_name, 0) == (0, 2)


# Reading


@every_client(Ability.CONSUME)
def test_reading_starts_inside_a_batch(client: Client, topic: str, reference: Reference) -> None:
    records = words(20)
    reference.produce(topic, records)
    reads = client.consume(topic, 0, 13, 5)
    assert [read.offset for read in reads] == [13, 14, 15, 16, 17]
    assert content(reads) == sent(records[13:18])


@every_client(Ability.CONSUME)
def test_a_large_record_is_read(client: Client, topic: str, reference: Reference) -> None:
    record = Record(b"x" * 900_000, b"large", (), int(time.time() * 1000))
    reference.produce(topic, [record])
    (read,) = client.consume(topic, 0, 0, 1)
    assert read.value == record.value


@every_client(Ability.BY_TIME)
def test_an_offset_is_found_by_its_time(client: Client, topic: str, reference: Reference) -> None:
    stamp_ms = int(time.time() * 1000) - 3_600_000
    reference.produce(topic, words(10, stamp_ms))
    assert client.offset_at(topic, 0, stamp_ms + 4) == 4
    assert client.offset_at(topic, 0, stamp_ms - 1000) == 0


@every_client(Ability.OFFSETS)
def test_first_and_next_offset(client: Client, topic: str, reference: Reference) -> None:
    assert client.first_and_next_offset(topic, 0) == (0, 0)
    reference.produce(topic, words(7))
    assert client.first_and_next_offset(topic, 0) == (0, 7)


@every_client(Ability.DELETE_RECORDS)
def test_deleted_records_are_not_read(client: Client, topic: str, reference: Reference) -> None:
    records = words(10)
    reference.produce(topic, records)
    client.delete_records(topic, 0, 4)
    assert reference.first_and_next_offset(topic, 0) == (4, 10)
    assert content(reference.consume(topic, 0, 4, 6)) == sent(records[4:])


# Refusals


@every_client(Ability.ADMIN)
def test_a_topic_cannot_be_created_twice(client: Client, topic: str) -> None:
    with pytest.raises(Refused) as refused:
        client.create_topic(topic)
    assert refused.value.code == "TOPIC_ALREADY_EXISTS"


@every_client(Ability.ADMIN)
def test_an_unknown_topic_cannot_be_deleted(client: Client, fresh_name: str) -> None:
    with pytest.raises(Refused) as refused:
        client.delete_topic(fresh_name)
    assert refused.value.code == "UNKNOWN_TOPIC_OR_PARTITION"


@every_client(Ability.ADMIN)
def test_more_replicas_than_brokers_are_refused(client: Client, fresh_name: str) -> None:
    with pytest.raises(Refused) as refused:
        client.create_topic(fresh_name, replicas=3)
    assert refused.value.code == "INVALID_REPLICATION_FACTOR"


@every_client(Ability.ADMIN)
def test_an_unknown_config_is_refused(client: Client, fresh_name: str) -> None:
    with pytest.raises(Refused) as refused:
        client.create_topic(fresh_name, configs={"no.such.config": "1"})
    assert refused.value.code == "INVALID_CONFIG"


@every_client(Ability.CONFIGS)
def test_a_nonsensical_value_of_a_config_is_refused(client: Client, topic: str) -> None:
    with pytest.raises(Refused) as refused:
        client.set_config(topic, "retention.ms", "soon")
    assert refused.value.code == "INVALID_CONFIG"


@every_client(Ability.ADMIN)
def test_a_topic_does_not_shrink(client: Client, fresh_name: str, reference: Reference) -> None:
    reference.create_topic(fresh_name, partitions=3)
    with pytest.raises(Refused) as refused:
        client.grow(fresh_name, 2)
    assert refused.value.code == "INVALID_PARTITIONS"


@every_client(Ability.DELETE_RECORDS)
def test_records_beyond_the_end_cannot_be_deleted(client: Client, topic: str, reference: Reference) -> None:
    reference.produce(topic, words(3))
    with pytest.raises(Refused) as refused:
        client.delete_records(topic, 0, 99)
    assert refused.value.code == "OFFSET_OUT_OF_RANGE"


@every_client(Ability.PRODUCE_ERRORS)
def test_a_record_above_the_topics_limit_is_refused(client: Client, fresh_name: str, reference: Reference) -> None:
    reference.create_topic(fresh_name, configs={"max.message.bytes": "2000"})
    with pytest.raises(Refused) as refused:
        client.produce(fresh_name, [Record(b"x" * 5000, b"key", (), int(time.time() * 1000))])
    assert refused.value.code == "MESSAGE_TOO_LARGE"
    assert reference.first_and_next_offset(fresh_name, 0) == (0, 0)


@every_client(Ability.PRODUCE_ERRORS, Ability.YOUNGER_ERRORS)
def test_a_keyless_record_is_refused_by_a_compacted_topic(
    client: Client, fresh_name: str, reference: Reference
) -> None:
    reference.create_topic(fresh_name, configs={"cleanup.policy": "compact"})
    with pytest.raises(Refused) as refused:
        client.produce(fresh_name, [Record(b"value", None, (), int(time.time() * 1000))])
    assert refused.value.code == "INVALID_RECORD"
    assert reference.first_and_next_offset(fresh_name, 0) == (0, 0)
