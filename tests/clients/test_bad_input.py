"""Bad input costs its sender the connection or its own part of a request, and nothing else.

Every test sends something wrong and then asks the same questions: was the offender told or cut off, does a
connection that was there before still work, did anything land in the log, did the process stay small? The last is
asked of Millstream alone: Apache Kafka's heap has its size from the start.
"""

from __future__ import annotations

import contextlib
import random
import struct
from typing import TYPE_CHECKING

import pytest

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.api_versions import ApiVersionsRequest
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from tests.clients.bystander import GOOD, NOW_MS, Bystander, created, next_offset, produce
from tests.support.batches import Record, batch_of
from tests.support.raw import RawClient, frame

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

pytestmark = pytest.mark.clients

LARGEST_FRAME = 100 * 1024 * 1024

# What is not Kafka at all

TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(194))
NOT_KAFKA = {
    "garbage": random.Random(20).randbytes(4096),
    "a TLS hello": TLS_HELLO,
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an SSH greeting": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a length of two gigabytes": struct.pack(">i", 2**31 - 1) + b"\0" * 64,
    "a negative length": struct.pack(">i", -1) + b"\0" * 64,
    "the smallest length": struct.pack(">i", -(2**31)) + b"\0" * 64,
    "an empty frame": struct.pack(">i", 0),
    "a frame too short for a header": struct.pack(">i", 3) + b"abc",
    "a frame above the limit": struct.pack(">i", LARGEST_FRAME + 1) + b"\0" * 64,
}


@pytest.mark.parametrize("data", NOT_KAFKA.values(), ids=NOT_KAFKA.keys())
def test_who_does_not_speak_kafka_is_cut_off(offender: RawClient, bystander: Bystander, data: bytes) -> None:
    offender.send_bytes(data)
    assert offender.hung_up()
    bystander.goes_on()


def test_half_a_frame_and_silence_disturb_nobody(offender: RawClient, bystander: Bystander) -> None:
    offender.send_bytes(frame(ApiVersionsRequest(), 0, 1)[:-3])
    bystander.goes_on()


@pytest.mark.millstream_only("Apache Kafka takes the memory that a length promises: fifty promises end its process")
def test_a_promised_length_takes_no_memory(broker: RunningBroker, bystander: Bystander) -> None:
    with contextlib.ExitStack() as liars:
        for _ in range(50):
            liar = liars.enter_context(RawClient.of(broker))
            liar.send_bytes(struct.pack(">i", LARGEST_FRAME - 1) + b"\0\0\0\x08" + b"\0" * 1000)
        bystander.goes_on()


# Frames whose content is wrong


def header(api_key: int, version: int, *, flexible: bool = False) -> bytes:
    return struct.pack(">hhih", api_key, version, 77, -1) + (b"\0" if flexible else b"")


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


HUGE = struct.pack(">i", 2**31 - 1)
HUGE_COMPACT = b"\xff\xff\xff\xff\x07"
WRONG_CONTENT = {
    "an unknown API": header(9999, 0),
    "a negative API": header(-5, 0),
    "an API that is gone": header(4, 0) + b"\0" * 40,
    "a version that is gone": header(1, 0) + b"\0" * 40,
    "a version of the future": header(3, 99, flexible=True) + b"\0" * 40,
    "a negative version": header(3, -1) + b"\0" * 40,
    "a client id longer than the frame": struct.pack(">hhih", 18, 0, 77, 32000) + b"abc",
    "a body cut short": header(3, 1) + b"\0\0",
    "an array of two billion topics": header(3, 1) + HUGE,
    "an array of two billion topics, compact": header(3, 12, flexible=True) + HUGE_COMPACT,
    "an array of minus seven": header(3, 4) + struct.pack(">i", -7) + b"\1",
    "a string longer than the frame": header(3, 1) + struct.pack(">ih", 1, 32767) + b"abc",
    "a number that never ends": header(3, 12, flexible=True) + b"\xff" * 20,
    "two billion tagged fields": header(3, 12, flexible=True) + b"\0\0\0" + HUGE_COMPACT,
    "records longer than the frame": header(0, 3) + struct.pack(">hhiih", -1, -1, 1000, 1, 1) + b"t"
    + struct.pack(">iii", 1, 0, 2**31 - 1),
    "records of minus nine bytes": header(0, 3) + struct.pack(">hhiih", -1, -1, 1000, 1, 1) + b"t"
    + struct.pack(">iii", 1, 0, -9),
}  # fmt: skip

READ_AS_NULL = pytest.mark.millstream_only("Apache Kafka takes every negative length for null")
NEGATIVE = ("an array of minus seven", "records of minus nine bytes")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(content, id=name, marks=[READ_AS_NULL] if name in NEGATIVE else [])
        for name, content in WRONG_CONTENT.items()
    ],
)
def test_a_frame_that_makes_no_sense_ends_its_connection(
    offender: RawClient, bystander: Bystander, content: bytes
) -> None:
    offender.send_bytes(framed(content))
    assert offender.hung_up()
    bystander.goes_on()


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_api_versions_of_the_future_are_answered_in_version_0(
    offender: RawClient, bystander: Bystander, version: int
) -> None:
    offender.send_bytes(framed(header(18, version, flexible=True) + b"\x05name\x02v\0"))
    answer = offender.receive_frame()
    assert answer is not None
    correlation_id, error_code, count = struct.unpack_from(">ihi", answer)
    assert (correlation_id, error_code) == (77, ErrorCode.UNSUPPORTED_VERSION)
    ranges = [struct.unpack_from(">hhh", answer, 10 + 6 * number) for number in range(count)]
    assert (18, 0, 4) in ranges, "the client learns what it may ask for"
    assert offender.call(ApiVersionsRequest(), 0).error_code == 0, "and asks again on the same connection"
    bystander.goes_on()


def test_a_name_that_is_not_utf8_harms_nobody(offender: RawClient, bystander: Bystander) -> None:
    name = b"\xff\xfe\x80"
    offender.send_bytes(framed(header(3, 4) + struct.pack(">ih", 1, len(name)) + name + b"\0"))
    answer = offender.receive_frame()
    # Apache Kafka reads the name with replacement characters and says that no topic can be called so.
    assert answer is None or struct.pack(">h", ErrorCode.INVALID_TOPIC_EXCEPTION) in answer
    bystander.goes_on()


# Names

ILLEGAL_NAMES = {
    "empty": "",
    "a dot": ".",
    "two dots": "..",
    "a path upwards": "../escape",
    "an absolute path": "/tmp/escape",
    "a slash": "a/b",
    "a backslash": "a\\b",
    "a zero byte": "a\0b",
    "a space": "a b",
    "a newline": "a\nb",
    "an umlaut": "größe",
    "250 letters": "x" * 250,
    "30,000 letters": "x" * 30_000,
}


@pytest.mark.parametrize("name", ILLEGAL_NAMES.values(), ids=ILLEGAL_NAMES.keys())
def test_an_illegal_name_is_refused_however_it_comes(
    broker: RunningBroker, offender: RawClient, bystander: Bystander, name: str
) -> None:
    before = sorted(path.name for path in broker.data_directory.parent.iterdir())
    assert created(offender, name) == ["INVALID_TOPIC_EXCEPTION"]
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    (described,) = offender.call(wanted, 12).topics
    assert ErrorCode(described.error_code).name in ("INVALID_TOPIC_EXCEPTION", "UNKNOWN_TOPIC_OR_PARTITION")
    assert produce(offender, name, GOOD) in ("UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION")
    assert sorted(path.name for path in broker.data_directory.parent.iterdir()) == before
    bystander.goes_on()


def test_249_letters_are_a_name(offender: RawClient, bystander: Bystander) -> None:
    name = "y" * 240 + bystander.topic[-9:].rjust(9, "y")
    assert created(offender, name) == ["NONE"]
    bystander.goes_on()


def test_names_that_differ_in_dots_and_underscores_alone_collide(offender: RawClient, bystander: Bystander) -> None:
    suffix = bystander.topic[-4:]
    assert created(offender, f"one.two.{suffix}") == ["NONE"]
    assert created(offender, f"one_two_{suffix}") == ["INVALID_TOPIC_EXCEPTION"]
    bystander.goes_on()


# Too much of what is right


def test_answers_that_nobody_reads_do_not_pile_up(
    broker: RunningBroker, offender: RawClient, bystander: Bystander
) -> None:
    other = f"{bystander.topic}-large"
    assert created(offender, other) == ["NONE"]
    assert produce(offender, other, batch_of(Record(b"x" * 900_000, b"key", (), NOW_MS))) == "NONE"
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(
        max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(topic=other, partitions=[partition])]
    )
    requests = b"".join(frame(fetch, 11, number) for number in range(1000))
    offender.socket.settimeout(3)
    # The broker may stop reading: what it should do once enough answers wait.
    with contextlib.suppress(TimeoutError):
        offender.send_bytes(requests)
    bystander.goes_on(memory_mb_max=160)


def test_requests_in_one_stream_of_single_bytes_are_understood(offender: RawClient, bystander: Bystander) -> None:
    for byte in frame(ApiVersionsRequest(), 0, 5):
        offender.send_bytes(bytes([byte]))
    answer = offender.receive_frame()
    assert answer is not None
    assert struct.unpack_from(">ih", answer) == (5, 0)
    bystander.goes_on()


def test_the_longest_wait_that_can_be_asked_for_ends_with_a_record(offender: RawClient, bystander: Bystander) -> None:
    offset = next_offset(offender, bystander.topic)
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    offender.send(
        FetchRequest(
            max_wait_ms=2**31 - 1,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=bystander.topic, partitions=[partition])],
        ),
        11,
    )
    bystander.goes_on()
    answer = offender.receive()
    assert len(answer.responses[0].partitions[0].records) > 0


@pytest.mark.parametrize("offset", [-5, 10, 2**63 - 1])
def test_an_offset_outside_of_the_log_is_refused(offender: RawClient, bystander: Bystander, offset: int) -> None:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=bystander.topic, partitions=[partition])]
    answer = offender.call(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics), 11)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    bystander.goes_on()


def test_many_idle_connections_disturb_nobody(broker: RunningBroker, bystander: Bystander) -> None:
    with contextlib.ExitStack() as idle:
        for _ in range(200):
            idle.enter_context(RawClient.of(broker))
        bystander.goes_on()
