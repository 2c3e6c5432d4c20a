"""Our codecs agree with Apache Kafka's serializers, byte for byte and both ways, on every message in every version."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.protocol import apis
from millstream.protocol.codec import decode, encode, piecewise_encoder
from millstream.protocol.coordinator_frame import (
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator_key,
    encode_coordinator_value,
)
from millstream.protocol.declare import declaration
from millstream.protocol.metadata_frame import decode_metadata_record, encode_metadata_record
from tests.protocol.catalog import declared_messages, every_version
from tests.support.apache_kafka import jar_directory
from tests.support.requirements import require
from tests.wire.values import build

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.protocol.declare import Message

HERE = Path(__file__).parent
GOLDEN = HERE / "golden.txt"


def golden_lines() -> list[str]:
    return [line for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]


def golden() -> Iterator[tuple[type[Message], int, str, bytes]]:
    declared = declared_messages()
    for line in golden_lines():
        java_name, version, variant, text = line.split(" ")
        # Java's classes of requests and responses have "Data" behind Kafka's name of the message.
        kind = declared.get(java_name) or declared[java_name.removesuffix("Data")]
        yield kind, int(version), variant, bytes.fromhex(text.removeprefix("-"))


def same_value(one: Any, other: Any) -> bool:
    return bool(one == other and type(one) is type(other))


def test_every_message_and_version_was_captured() -> None:
    captured = {(kind, version) for kind, version, variant, _ in golden() if variant == "full"}
    assert captured == set(every_version())


@pytest.mark.parametrize("variant", ["full", "null", "default", "long"])
def test_messages_encode_to_kafkas_bytes(variant: Any) -> None:
    wrong = [
        (kind.__name__, version)
        for kind, version, captured, data in golden()
        if captured == variant and encode(build(kind, version, variant), version) != data
    ]
    assert wrong == []


@pytest.mark.parametrize("variant", ["full", "null", "default", "long"])
def test_kafkas_bytes_decode_to_the_same_values(variant: Any) -> None:
    wrong = [
        (kind.__name__, version)
        for kind, version, captured, data in golden()
        if captured == variant and not same_value(decode(kind, version, data), build(kind, version, variant))
    ]
    assert wrong == []


def test_pieces_join_to_the_same_bytes() -> None:
    for kind, version, variant, data in golden():
        if variant == "long":
            pieces = piecewise_encoder(kind, version)(build(kind, version, "long"), bytearray())
            assert b"".join(pieces) == data


def test_records_of_kafkas_logs_have_kafkas_frames() -> None:
    coordinator_logs = {
        kind: log
        for log, names in apis.COORDINATOR_RECORD_NAMES.items()
        for number in names
        for kind in apis.coordinator_record_classes(log, number)
    }
    framed = [(kind, version, data) for kind, version, variant, data in golden() if variant == "framed"]
    assert framed
    for kind, version, data in framed:
        record = build(kind, version, "full")
        if declaration(kind).record_type is not None:
            assert encode_metadata_record(record, version) == data
            assert decode_metadata_record(data) == (record, version)
        elif kind.__name__.endswith("Key"):
            assert encode_coordinator_key(record) == data
            assert decode_coordinator_key(coordinator_logs[kind], data) == record
        else:
            number = declaration(kind).coordinator_type
            assert number is not None
            key = build(apis.coordinator_record_classes(coordinator_logs[kind], number)[0], 0, "full")
            assert encode_coordinator_value(record, version) == data
            assert decode_coordinator_value(coordinator_logs[kind], key, data) == (record, version)


@pytest.mark.java
def test_capturing_again_gives_the_committed_bytes() -> None:
    java = require("java", "it runs Apache Kafka's serializers")
    command = [java, "-XX:TieredStopAtLevel=1", "-cp", f"{jar_directory()}/*", str(HERE / "Capture.java")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8", timeout=120)
    assert done.stdout.splitlines() == golden_lines()
