"""Record batches that lie about what they hold: refused whole, by name, with nothing written.

The names are Apache Kafka's where it has one; where it says UNKNOWN_SERVER_ERROR for a client's mistake, a better one
is allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cramjam
import pytest

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.clients.bystander import CUT_OFF, GOOD, MEGABYTE_KB, NOW_MS, Bystander, created, produce
from tests.support.batches import GZIP, LZ4, SNAPPY, ZSTD, Record, batch_of, encode_records, seal, varint
from tests.support.running import RunningBroker, forget_peak_memory, memory_kb

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.reference import Reference
    from tests.support.raw import RawClient

pytestmark = pytest.mark.clients

PAYLOAD = encode_records([Record(b"value-%d" % number, b"key", (), NOW_MS) for number in range(5)])
STAMPS = {"base_timestamp_ms": NOW_MS}
CORRUPT, INVALID = "CORRUPT_MESSAGE", "INVALID_RECORD"


def flipped(batch: bytes, position: int) -> bytes:
    changed = bytearray(batch)
    changed[position] ^= 0x40
    return bytes(changed)


BAD_BATCHES: dict[str, tuple[bytes | None, set[str]]] = {
    "a wrong checksum": (seal(PAYLOAD, 5, crc=12345, **STAMPS), {CORRUPT}),
    "a flipped bit": (flipped(batch_of(Record(b"value", b"key", (), NOW_MS)), 65), {CORRUPT}),
    "a length beyond the batch": (seal(PAYLOAD, 5, length=10_000, **STAMPS), {CORRUPT, INVALID, CUT_OFF}),
    "a length of nothing": (seal(PAYLOAD, 5, length=0, **STAMPS), {CORRUPT, CUT_OFF}),
    "a negative length": (seal(PAYLOAD, 5, length=-1, **STAMPS), {CORRUPT, CUT_OFF}),
    "half a header": (seal(PAYLOAD, 5, **STAMPS)[:40], {CORRUPT, INVALID, CUT_OFF}),
    "half a batch": (seal(PAYLOAD, 5, **STAMPS)[:-20], {CORRUPT, INVALID, CUT_OFF}),
    "an unknown magic": (seal(PAYLOAD, 5, magic=7, **STAMPS), {CORRUPT, "UNSUPPORTED_FOR_MESSAGE_FORMAT", CUT_OFF}),
    "more records promised than there are": (seal(PAYLOAD, 9, **STAMPS), {INVALID, CORRUPT}),
    "fewer records promised than there are": (seal(PAYLOAD, 2, **STAMPS), {INVALID, CORRUPT}),
    "two billion records promised": (seal(PAYLOAD, 2**31 - 1, **STAMPS), {INVALID, "MESSAGE_TOO_LARGE"}),
    "no records promised": (seal(b"", 0, **STAMPS), {INVALID, CORRUPT}),
    "minus five records promised": (seal(PAYLOAD, -5, **STAMPS), {INVALID, CORRUPT}),
    "a last offset that does not fit": (seal(PAYLOAD, 5, last_offset_delta=99, **STAMPS), {INVALID, CORRUPT}),
    "a codec that does not exist": (
        seal(PAYLOAD, 5, attributes=7, **STAMPS),
        {"UNSUPPORTED_COMPRESSION_TYPE", INVALID, "UNKNOWN_SERVER_ERROR"},
    ),
    "a control batch": (seal(PAYLOAD, 5, attributes=0x20, **STAMPS), {INVALID}),
    "a record longer than its batch": (seal(varint(5000) + b"\0" * 30, 1, **STAMPS), {INVALID, CORRUPT}),
    "a record of negative length": (seal(varint(-5) + b"\0" * 30, 1, **STAMPS), {INVALID, CORRUPT}),
    "a key longer than its record": (
        seal(varint(6) + b"\0\0\0" + varint(4000) + b"k", 1, **STAMPS),
        {INVALID, CORRUPT},
    ),
    "a billion headers": (seal(varint(10) + b"\0\0\0\1\1" + varint(2**30), 1, **STAMPS), {INVALID, CORRUPT}),
    "garbage that calls itself gzip": (
        seal(b"garbage" * 9, 3, codec=GZIP, **STAMPS),
        {INVALID, CORRUPT, "UNKNOWN_SERVER_ERROR"},
    ),
    "garbage that calls itself snappy": (
        seal(b"garbage" * 9, 3, codec=SNAPPY, **STAMPS),
        {INVALID, CORRUPT, "UNKNOWN_SERVER_ERROR"},
    ),
    "garbage that calls itself lz4": (
        seal(b"garbage" * 9, 3, codec=LZ4, **STAMPS),
        {INVALID, CORRUPT, "UNKNOWN_SERVER_ERROR"},
    ),
    "garbage that calls itself zstd": (
        seal(b"garbage" * 9, 3, codec=ZSTD, **STAMPS),
        {INVALID, CORRUPT, "UNKNOWN_SERVER_ERROR"},
    ),
    "two batches at once": (GOOD + GOOD, {INVALID}),
    "nothing": (b"", {INVALID, "CORRUPT_MESSAGE", CUT_OFF}),
    "null": (None, {INVALID, "CORRUPT_MESSAGE", CUT_OFF, "INVALID_REQUEST"}),
}


NEVER_ANSWERED = pytest.mark.millstream_only("Apache Kafka never answers a Produce without records")


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param(*case, id=name, marks=[NEVER_ANSWERED] if case[0] is None else [])
        for name, case in BAD_BATCHES.items()
    ],
)
def test_a_batch_that_lies_is_refused(
    offender: RawClient, bystander: Bystander, records: bytes | None, expected: set[str]
) -> None:
    assert produce(offender, bystander.topic, records) in expected
    bystander.goes_on()


def test_one_bad_partition_does_not_fail_its_neighbour(offender: RawClient, bystander: Bystander) -> None:
    other = f"{bystander.topic}-other"
    assert created(offender, other) == ["NONE"]
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=records)])
            for name, records in ((bystander.topic, seal(PAYLOAD, 5, crc=1, **STAMPS)), (other, GOOD))
        ],
    )
    answers = {each.name: each.partition_responses[0].error_code for each in offender.call(request, 8).responses}
    assert answers == {bystander.topic: ErrorCode.CORRUPT_MESSAGE, other: ErrorCode.NONE}
    bystander.goes_on()


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_acks_that_do_not_exist_are_refused(offender: RawClient, bystander: Bystander, acks: int) -> None:
    assert produce(offender, bystander.topic, GOOD, acks) == "INVALID_REQUIRED_ACKS"
    bystander.goes_on()


def zeros_compressed(codec: int, megabytes: int) -> bytes:
    """One honest record of so many zeros, compressed to next to nothing."""
    record = encode_records([Record(bytes(megabytes << 20), b"key", (), NOW_MS)])
    compress: dict[int, Callable[[bytes], Any]] = {
        GZIP: cramjam.gzip.compress,
        LZ4: cramjam.lz4.compress,
        ZSTD: cramjam.zstd.compress,
    }
    return bytes(compress[codec](record))


@pytest.mark.slow
@pytest.mark.millstream_only("Apache Kafka takes them: it streams through the batch and has no limit")
@pytest.mark.parametrize(("codec", "megabytes"), [(GZIP, 600), (LZ4, 400), (ZSTD, 1000)], ids=["gzip", "lz4", "zstd"])
def test_a_decompression_bomb_is_refused(
    broker: RunningBroker,
    offender: RawClient,
    bystander: Bystander,
    reference: Reference,
    codec: int,
    megabytes: int,
) -> None:
    payload = zeros_compressed(codec, megabytes)
    assert len(payload) < 2_000_000
    reference.set_config(bystander.topic, "max.message.bytes", "10000000")
    forget_peak_memory(broker.pid)
    before_kb = memory_kb(broker.pid, "VmHWM")
    assert produce(offender, bystander.topic, seal(payload, 1, codec=codec, **STAMPS)) != "NONE"
    peak_kb = memory_kb(broker.pid, "VmHWM") - before_kb
    assert peak_kb < (256 + 64) * MEGABYTE_KB, f"the process grew by {peak_kb} KB; its limit for one batch is 256 MB"
    bystander.goes_on()
