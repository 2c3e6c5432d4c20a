"""What decoding refuses, what it lets pass, and what encoding says of values that do not fit."""

from __future__ import annotations

import pytest

from millstream.protocol.codec import decode, decode_prefix, decoder, encode, encoder, piecewise_encoder
from millstream.protocol.declare import Bytes, Int32, String, message, wire
from millstream.protocol.errors import MalformedMessage, UnsupportedVersion
from millstream.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from millstream.protocol.messages.heartbeat import HeartbeatRequest
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from millstream.protocol.uuid import ZERO_UUID


@message(versions="0-1", flexible="1+")
class Sample:
    """One of each kind of field that can go wrong."""

    number: Int32
    text: String
    maybe: String | None
    numbers: list[Int32]
    late: Bytes = wire("1+", default=b"late", tag=3)


SAMPLE = Sample(number=1, text="ab", maybe=None, numbers=[5])
# number, length 3-1 and "ab", null, one number, no tags
SAMPLE_BYTES = bytes.fromhex("00000001 03 6162 00 02 00000005 00")


def test_fields_lie_in_order_with_compact_lengths() -> None:
    assert encode(SAMPLE, 1) == SAMPLE_BYTES
    assert decode(Sample, 1, SAMPLE_BYTES) == SAMPLE


def test_inflexible_versions_have_fixed_lengths_and_no_tags() -> None:
    data = bytes.fromhex("00000001 0002 6162 ffff 00000001 00000005")
    assert encode(SAMPLE, 0) == data
    assert decode(Sample, 0, data) == SAMPLE


def test_a_field_that_the_version_lacks_is_ignored_and_comes_back_as_its_default() -> None:
    rich = Sample(number=1, text="ab", maybe=None, numbers=[5], late=b"given")
    assert encode(rich, 0) == encode(SAMPLE, 0)
    assert decode(Sample, 0, encode(rich, 0)).late == b"late"


def test_tagged_fields_are_written_only_if_they_differ_from_their_default() -> None:
    rich = Sample(number=1, text="ab", maybe=None, numbers=[5], late=b"x")
    assert encode(rich, 1) == SAMPLE_BYTES[:-1] + bytes.fromhex("01 03 02 02 78")
    assert decode(Sample, 1, encode(rich, 1)) == rich


def test_tagged_fields_are_written_by_tag_not_by_declaration() -> None:
    change = PartitionChangeRecord(topic_id=ZERO_UUID, directories=[], last_known_elr=[])
    tags = encode(change, 2)[4 + 16 :]
    assert tags == bytes.fromhex("02 07 01 01 08 01 01")


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        ("02 03 02 02 78 03 02 02 78", "twice"),
        ("02 09 00 09 00", "twice"),
        ("01 09 05 00", "claims 5 bytes"),
        ("01 03 03 02 78 00", "size is wrong"),
        ("01 03 01 02 78", "size is wrong"),
        ("01 03", "ends too early"),
        ("02 09 00", "ends too early"),
    ],
)
def test_bad_tags_are_refused(tags: str, why: str) -> None:
    with pytest.raises(MalformedMessage, match=why):
        decode(Sample, 1, SAMPLE_BYTES[:-1] + bytes.fromhex(tags))


def test_unknown_tags_are_passed_over_in_any_order() -> None:
    with_unknown = SAMPLE_BYTES[:-1] + bytes.fromhex("03 09 02 ffff 03 02 02 78 8001 00")
    assert decode(Sample, 1, with_unknown) == Sample(number=1, text="ab", maybe=None, numbers=[5], late=b"x")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("00000001 00", "text of impossible length"),  # null where none may be
        ("00000001 0a 6162 00 01 00", "text of impossible length"),
        ("00000001 8080808001", "more than 32767"),
        ("00000001 ffffffffff01", "too long"),
        ("00000001 8080808080", "too long"),
        ("00000001 03 fffe 00 01 00", "not UTF-8"),
        ("00000001 03 6162 00 00 00", "impossible number of numbers"),
        ("00000001 03 6162 00 ffffffff07", "impossible number of numbers"),
        ("00000001 03 6162 00 03 00000005 00", "impossible number of numbers"),
        ("000000", "ends too early"),
        ("", "ends too early"),
    ],
)
def test_nonsense_is_refused_in_flexible_versions(data: str, why: str) -> None:
    with pytest.raises(MalformedMessage, match=why):
        decode(Sample, 1, bytes.fromhex(data))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("00000001 ffff", "text of impossible length"),
        ("00000001 8000", "text of impossible length"),
        ("00000001 7fff 6162", "text of impossible length"),
        ("00000001 0002 6162 fffe 00000000", "maybe of impossible length"),
        ("00000001 0002 6162 ffff ffffffff", "impossible number of numbers"),
        ("00000001 0002 6162 ffff 7fffffff", "impossible number of numbers"),
        ("00000001 0002 6162 ffff 80000000", "impossible number of numbers"),
    ],
)
def test_nonsense_is_refused_in_old_versions(data: str, why: str) -> None:
    with pytest.raises(MalformedMessage, match=why):
        decode(Sample, 0, bytes.fromhex(data))


def test_a_string_of_a_flexible_version_is_not_longer_than_kafka_allows() -> None:
    data = bytes.fromhex("00000001") + b"\x81\x80\x02" + b"x" * 32768
    with pytest.raises(MalformedMessage, match="more than 32767"):
        decode(Sample, 1, data)


@pytest.mark.parametrize("version", [0, 1])
def test_a_string_that_does_not_fit_is_not_encoded(version: int) -> None:
    assert decode(Sample, version, encode(Sample(number=1, text="x" * 32767, maybe=None, numbers=[]), version))
    with pytest.raises(ValueError, match="text takes 32768 bytes"):
        encode(Sample(number=1, text="x" * 32768, maybe=None, numbers=[]), version)


@pytest.mark.parametrize(
    "wrong",
    [
        Sample(number=2**31, text="", maybe=None, numbers=[]),
        Sample(number=1, text=None, maybe=None, numbers=[]),  # type: ignore[arg-type]
        Sample(number=1, text="\ud800", maybe=None, numbers=[]),
        Sample(number=1, text="", maybe=None, numbers=None),  # type: ignore[arg-type]
        Sample(number=1, text="", maybe=None, numbers=[2**40]),
    ],
)
def test_values_that_do_not_fit_raise_value_error(wrong: Sample) -> None:
    for version in (0, 1):
        with pytest.raises(ValueError, match=r"Sample v|surrogates not allowed"):
            encode(wrong, version)


def test_null_is_refused_in_versions_that_do_not_know_it() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None)])
    assert decode(MetadataRequest, 10, encode(request, 10)) == request
    with pytest.raises(ValueError, match="MetadataRequest v9"):
        encode(request, 9)
    with pytest.raises(MalformedMessage):
        decode(MetadataRequest, 0, b"\xff\xff\xff\xff")


def test_versions_outside_of_the_declared_ones_are_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="HeartbeatRequest has versions 0 to 4, not 5"):
        decoder(HeartbeatRequest, 5)
    with pytest.raises(UnsupportedVersion):
        encoder(HeartbeatRequest, -1)


def test_a_prefix_may_be_followed_by_more() -> None:
    assert decode_prefix(Sample, 1, b"??" + SAMPLE_BYTES + b"rest", 2) == (SAMPLE, 2 + len(SAMPLE_BYTES))


def test_records_are_views_of_the_frame_and_bytes_are_copies() -> None:
    partition = PartitionProduceData(index=0, records=b"batch")
    topic = TopicProduceData(name="t", partition_data=[partition])
    frame = bytearray(encode(ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), 9))
    records = decode(ProduceRequest, 9, frame).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame

    token = decode(SaslAuthenticateRequest, 2, bytearray(encode(SaslAuthenticateRequest(auth_bytes=b"secret"), 2)))
    assert type(token.auth_bytes) is bytes


def test_large_batches_are_handed_on_as_they_are() -> None:
    batch = memoryview(bytes(1000))
    partition = PartitionData(partition_index=0, high_watermark=1, aborted_transactions=None, records=batch)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    out = bytearray(b"header")
    pieces = piecewise_encoder(FetchResponse, 12)(response, out)
    assert pieces[0] is out
    assert any(piece is batch for piece in pieces)
    assert b"".join(pieces) == b"header" + encode(response, 12)
