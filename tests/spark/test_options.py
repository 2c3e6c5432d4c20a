"""Options are those of Spark's Kafka source and sink, and a wrong one is named before anything runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import types as t

from millstream.client.errors import BadOption
from millstream.spark.options import EARLIEST, LATEST, Bound, parse_duration_ms, parse_read, parse_write
from millstream.spark.schema import check_written

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def read(*, streaming: bool = False, **options: str) -> Any:
    return parse_read({**SERVERS, **({} if _chosen(options) else {"subscribe": "a"}), **options}, streaming=streaming)


def _chosen(options: dict[str, str]) -> bool:
    return not options.keys().isdisjoint({"subscribe", "subscribePattern", "assign"})


def test_defaults_are_those_of_sparks_source() -> None:
    batch, stream = read(), read(streaming=True)
    assert batch.start == Bound(everywhere=EARLIEST, option="startingOffsets")
    assert batch.end == Bound(everywhere=LATEST, option="endingOffsets")
    assert stream.start.everywhere == LATEST
    assert (batch.fail_on_data_loss, batch.include_headers, batch.read_committed) == (True, False, False)
    assert (batch.offsets_max, batch.offsets_min, batch.trigger_delay_ms_max) == (None, None, 900_000)
    assert batch.poll_timeout_ms == 120_000
    written = parse_write(SERVERS)
    assert (written.topic, written.acks, written.compression) == (None, -1, "none")


def test_names_are_known_in_any_case_as_spark_hands_them_over_in_lower_case() -> None:
    options = {**SERVERS, "subscribepattern": "a.*", "maxoffsetspertrigger": "5", "INCLUDEHEADERS": "True"}
    found = parse_read(options, streaming=True)
    assert (found.selection.pattern, found.offsets_max, found.include_headers) == ("a.*", 5, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffset": "earliest"}, "there is no option startingOffset, did you mean startingOffsets?"),
        ({"kafka.bootstrap.server": "x"}, "kafka.bootstrap.server, did you mean kafka.bootstrap.servers?"),
        ({"kafka.securtiy.protocol": "SSL"}, "did you mean kafka.security.protocol?"),
        ({"topic": "a"}, "topic has no meaning for a batch read"),
        ({"quite.something.else": "a"}, "there is no option quite.something.else"),
        ({"kafka.auto.offset.reset": "earliest"}, "startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "checkpoint"),
        ({"kafka.key.deserializer": "x"}, "bytes"),
        ({"kafka.ssl.truststore.location": "x.jks"}, "security.protocol is missing"),
        ({"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "GSSAPI"}, "must be one of PLAIN"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "but assign and subscribe does"),
        ({"subscribe": " , "}, "names no topic"),
        ({"assign": "{}"}, "names no partition"),
        ({"assign": '{"a":[0,-1]}'}, "partition -1 of topic 'a': they count from 0"),
        ({"startingOffsets": '{"a":{"0":1.7}}'}, "must be JSON like"),
        ({"assign": "[0]"}, '{"topicA":[0,1],"topicB":[2,4]}'),
        ({"subscribePattern": "a["}, "no regular expression"),
        ({"startingOffsets": "latest"}, "cannot be latest"),
        ({"startingOffsets": '{"a":{"0":-1}}'}, "cannot be latest"),
        ({"startingOffsets": '{"a":{"0":-3}}'}, "no offset"),
        ({"startingOffsets": "now"}, "must be JSON like"),
        ({"endingOffsets": "earliest"}, "cannot be earliest"),
        ({"endingOffsets": '{"a":{"0":-2}}'}, "cannot be earliest"),
        ({"startingTimestamp": "yesterday"}, "whole number"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "error, latest"),
        ({"failOnDataLoss": "maybe"}, "one of true, false, unlessexpired"),
        ({"minPartitions": "0"}, "at least 1"),
        ({"maxTriggerDelay": "soon"}, "duration"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "larger than"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(options: dict[str, str], said: str) -> None:
    with pytest.raises(BadOption) as refusal:
        read(**options)
    assert said in str(refusal.value)


def test_a_read_says_what_to_read_and_where_the_brokers_are() -> None:
    with pytest.raises(BadOption, match="none of them"):
        parse_read(SERVERS, streaming=False)
    with pytest.raises(BadOption, match=r"kafka\.bootstrap\.servers is missing"):
        parse_read({"subscribe": "a"}, streaming=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_streaming_read_has_no_end(name: str) -> None:
    value = {"endingOffsets": "latest", "endingTimestamp": "1"}.get(name, '{"a":{"0":1}}')
    with pytest.raises(BadOption, match="has no end"):
        read(streaming=True, **{name: value})


def test_a_partition_that_is_named_twice_is_read_once() -> None:
    found = read(assign='{"a":[1,0,1],"b":[0]}').selection
    assert found.partitions == (("a", 1), ("a", 0), ("b", 0))
    assert [found.includes(place) for place in (("a", 0), ("a", 2), ("c", 0))] == [True, False, False]
    assert read(subscribePattern="a.*").selection.includes(("ab", 9))
    assert not read(subscribe="a").selection.includes(("ab", 9))


@pytest.mark.parametrize("kind", [t.StringType(), t.DateType(), t.DoubleType()], ids=str)
def test_a_timestamp_that_is_no_time_is_left_out(kind: t.DataType, caplog: pytest.LogCaptureFixture) -> None:
    columns = t.StructType([t.StructField("value", t.StringType()), t.StructField("timestamp", kind)])
    assert check_written(columns, "orders") == ("value",)
    assert f"the column 'timestamp' is a {kind.simpleString()}" in caplog.text
    fitting = t.StructType([columns["value"], t.StructField("timestamp", t.TimestampNTZType())])
    assert check_written(fitting, "orders") == ("value", "timestamp")


def test_times_come_before_offsets_as_in_spark() -> None:
    everything = {
        "startingTimestamp": "7",
        "startingOffsetsByTimestamp": '{"a":{"0":5}}',
        "startingOffsets": '{"a":{"0":3,"1":-2}}',
    }
    assert read(**everything).start.timestamp_ms == 7
    del everything["startingTimestamp"]
    assert read(**everything).start.timestamps_ms == {("a", 0): 5}
    del everything["startingOffsetsByTimestamp"]
    assert read(**everything).start.offsets.places == {("a", 0): 3, ("a", 1): -2}


def test_settings_of_kafkas_clients_reach_the_client_or_are_known_to_have_no_effect() -> None:
    options = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": 'X required username="ada" password="lovelace";',
        "kafka.ssl.ca.location": "ca.pem",
        "kafka.request.timeout.ms": "1000",
        "kafka.group.id": "mine",
        "groupIdPrefix": "ours",
        "kafka.fetch.min.bytes": "1",
        "kafka.isolation.level": "read_committed",
        "kafka.max.partition.fetch.bytes": "1000",
        "kafka.acks": "1",
    }
    found = read(**options)
    assert "group.id" not in found.connection
    assert found.connection["sasl.mechanism"] == "SCRAM-SHA-512"
    assert (found.read_committed, found.fetch_bytes) == (True, 1000)
    written = parse_write({**SERVERS, "kafka.acks": "1", "kafka.compression.type": "zstd", "kafka.linger.ms": "5"})
    assert (written.acks, written.compression) == (1, "zstd")
    assert parse_write({**SERVERS, "kafka.batch.size": "0"}).batch_bytes == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kafka.transactional.id": "x"}, "exactly_once"),
        ({"kafka.partitioner.class": "x"}, "a column 'partition'"),
        ({"kafka.partitioner.ignore.keys": "true"}, "a column 'partition'"),
        ({"kafka.acks": "2"}, "must be one of all, -1, 0, 1"),
        ({"startingOffsets": "earliest"}, "has no meaning for a write"),
        ({"topik": "x"}, "did you mean topic?"),
    ],
)
def test_a_write_refuses_too(options: dict[str, str], said: str) -> None:
    with pytest.raises(BadOption) as refusal:
        parse_write({**SERVERS, **options})
    assert said in str(refusal.value)


@pytest.mark.parametrize(("text", "ms"), [("15m", 900_000), ("20", 20), ("3 s", 3000), ("1h", 3_600_000)])
def test_durations_are_written_as_for_spark(text: str, ms: int) -> None:
    assert parse_duration_ms("maxTriggerDelay", text) == ms


def test_offsets_from_a_checkpoint_can_be_given_back() -> None:
    text = json.dumps({"a": {"0": 3}, "@ids": {"a": "x"}})
    offsets = read(startingOffsets=text).start.offsets
    assert (offsets.places, offsets.ids) == ({("a", 0): 3}, {"a": "x"})
