"""Headers of requests and responses, and the frames of Kafka's own logs."""

from __future__ import annotations

import pytest

from millstream.protocol.codec import decode, encode
from millstream.protocol.coordinator_frame import decode_coordinator_key, decode_coordinator_value
from millstream.protocol.errors import MalformedMessage, UnknownRecordType
from millstream.protocol.frames import (
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    encode_response_pieces,
)
from millstream.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from millstream.protocol.messages.groups.group_metadata import GroupMetadataKey
from millstream.protocol.messages.headers import RequestHeader, ResponseHeader
from millstream.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from millstream.protocol.metadata_frame import decode_metadata_record

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest.mark.parametrize(("version", "header_version"), [(3, 1), (4, 2)])
@pytest.mark.parametrize("client_id", ["someone", "", None, "möhre"])
def test_a_request_is_its_declared_header_and_the_message(
    version: int, header_version: int, client_id: str | None
) -> None:
    header = RequestHeader(request_api_key=12, request_api_version=version, correlation_id=77, client_id=client_id)
    expected = encode(header, header_version) + encode(HEARTBEAT, version)
    frame = encode_request(HEARTBEAT, version, 77, client_id)
    assert frame == len(expected).to_bytes(4, "big") + expected

    *read, position = decode_request_header(memoryview(frame)[4:])
    assert read == [12, version, 77, client_id]
    assert decode(HeartbeatRequest, version, frame[4:], position) == HEARTBEAT


@pytest.mark.parametrize(("version", "header_version"), [(3, 0), (4, 1)])
def test_a_response_is_its_declared_header_and_the_message(version: int, header_version: int) -> None:
    response = HeartbeatResponse(error_code=27)
    expected = encode(ResponseHeader(correlation_id=77), header_version) + encode(response, version)
    frame = encode_response(12, version, 77, response)
    assert frame == len(expected).to_bytes(4, "big") + expected
    assert b"".join(encode_response_pieces(12, version, 77, response)) == frame
    assert decode_response(12, version, frame[4:]) == (77, response)


def test_the_header_of_an_api_versions_response_never_has_tags() -> None:
    response = ApiVersionsResponse(api_keys=[])
    frame = encode_response(18, 4, 77, response)
    assert frame[4:8] == (77).to_bytes(4, "big")
    assert frame[8:] == encode(response, 4)
    assert decode_response(18, 4, frame[4:]) == (77, response)
    request = encode_request(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4, 1, None)
    assert decode_request_header(request[4:])[-1] == 11


def test_unknown_tags_of_a_header_are_passed_over() -> None:
    frame = bytes.fromhex("000c 0004 0000004d ffff 02 00 01 ff 05 00") + encode(HEARTBEAT, 4)
    assert decode_request_header(frame)[-1] == 16


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "000c 0004 0000004d ff",
        "000c 0004 0000004d fffe 00",
        "000c 0004 0000004d 0005 6162",
        "000c 0004 0000004d 0002 fffe 00",
        "000c 0004 0000004d ffff",
        "000c 0004 0000004d ffff 01",
        "000c 0004 0000004d ffff 01 00 09",
        "000c 0004 0000004d ffff 02 00 00 00 00",
        "0004 0000 0000004d ffff",  # no such API
    ],
)
def test_bad_request_headers_are_refused(frame: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_request_header(bytes.fromhex(frame))


@pytest.mark.parametrize("frame", ["", "000000", "0000004d", "0000004d 01"])
def test_bad_responses_are_refused(frame: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_response(12, 4, bytes.fromhex(frame))


def test_a_client_id_that_does_not_fit_is_not_encoded() -> None:
    with pytest.raises(ValueError, match="client id"):
        encode_request(HEARTBEAT, 4, 1, "x" * 32768)


@pytest.mark.parametrize("value", ["02 14 00 00", "01 06 00 00", "01 14 01 00"])
def test_metadata_records_of_a_newer_release_are_told_apart(value: str) -> None:
    with pytest.raises(UnknownRecordType):
        decode_metadata_record(bytes.fromhex(value))


@pytest.mark.parametrize("value", ["", "01", "01 14", "01 14 00", "01 14 00 00 00", "01 ffffffffff 00"])
def test_malformed_metadata_records_are_refused(value: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_metadata_record(bytes.fromhex(value))


def test_coordinator_records_of_a_newer_release_are_told_apart() -> None:
    with pytest.raises(UnknownRecordType):
        decode_coordinator_key("groups", bytes.fromhex("0063"))
    with pytest.raises(UnknownRecordType):
        decode_coordinator_value("groups", GroupMetadataKey(group="g"), bytes.fromhex("0009"))


@pytest.mark.parametrize("data", ["", "00", "0002", "0002 0001", "0002 0001 67 00"])
def test_malformed_coordinator_keys_are_refused(data: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_coordinator_key("groups", bytes.fromhex(data))
