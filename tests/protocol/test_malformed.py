"""Bad input raises MalformedMessage, nothing else, and takes no memory to speak of.

Apache Kafka's own bytes are bent in every place: cut off, extended, overwritten. What still decodes must be a message
that can be encoded again.
"""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.protocol.codec import decode, encode
from millstream.protocol.errors import MalformedMessage
from tests.protocol.catalog import declared_messages, every_version, versions_of
from tests.support.alone import run_alone
from tests.wire.values import build

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.protocol.declare import Message

EVERY_VERSION = list(every_version())
NEWEST = [(kind, versions_of(kind)[-1]) for _, kind in sorted(declared_messages().items())]
# Lengths and counts as a liar writes them: int32 and int16 maxima, negatives, the longest varint, one that never ends.
LIES = (b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\xff\xff", b"\x7f\xff")


def whole(kind: type[Message], version: int) -> bytes:
    return encode(build(kind, version, "full"), version)


def attempt(kind: type[Message], version: int, data: bytes) -> bool:
    """Decode; whether it worked. Anything but a message or MalformedMessage fails the test."""
    try:
        message = decode(kind, version, data)
    except MalformedMessage:
        return False
    # Compared as bytes, since a number that is NaN differs from itself.
    encoded = encode(message, version)
    assert encode(decode(kind, version, encoded), version) == encoded
    return True


def overwritten(data: bytes, lies: tuple[bytes, ...]) -> Iterator[bytes]:
    # Large messages repeat themselves: every third or fourth place of them will do.
    for position in range(0, len(data), 1 + len(data) // 300):
        for lie in lies:
            yield data[:position] + lie + data[position + len(lie) :]


def test_no_message_is_a_part_of_itself() -> None:
    for kind, version in EVERY_VERSION:
        data = whole(kind, version)
        for end in range(len(data)):
            with pytest.raises(MalformedMessage):
                decode(kind, version, data[:end])


def test_bytes_after_a_message_are_refused() -> None:
    for kind, version in EVERY_VERSION:
        with pytest.raises(MalformedMessage, match="bytes too many"):
            decode(kind, version, whole(kind, version) + b"\0")


def test_any_byte_may_be_wrong() -> None:
    single = (b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff")
    for kind, version in NEWEST:
        for data in overwritten(whole(kind, version), single):
            attempt(kind, version, data)


def test_any_length_may_be_a_lie() -> None:
    for kind, version in NEWEST:
        for data in overwritten(whole(kind, version), LIES):
            attempt(kind, version, data)


# tracemalloc looks up the line of each allocation, which takes long in large generated functions: hence only these.
MEASURED = ["ProduceRequest", "FetchRequest", "MetadataRequest", "ListGroupsRequest", "VotersRecord"]


def costliest_lies(names: list[str]) -> list[tuple[str, int, int, str]]:
    """Of each message and version the lie that took most memory: name, bytes at the peak, bytes allowed, the input."""
    return [costliest_lie(name, version) for name in names for version in first_and_last(name)]


def first_and_last(name: str) -> tuple[int, int]:
    versions = versions_of(declared_messages()[name])
    return versions[0], versions[-1]


def costliest_lie(name: str, version: int) -> tuple[str, int, int, str]:
    kind = declared_messages()[name]
    data = whole(kind, version)
    attempt(kind, version, data)  # compiles, which takes memory too
    tracemalloc.start()
    worst, culprit = 0, b""
    for lying in overwritten(data, LIES):
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        attempt(kind, version, lying)
        _, peak = tracemalloc.get_traced_memory()
        if peak - before > worst:
            worst, culprit = peak - before, lying
    tracemalloc.stop()
    return f"{name} v{version}", worst, 20_000 + 100 * len(data), culprit.hex()


def test_lies_about_lengths_cost_nothing() -> None:
    """The peak of memory while decoding is bounded by the size of the input, whatever the input claims."""
    measured = run_alone(costliest_lies, MEASURED)
    assert len(measured) == 2 * len(MEASURED)
    assert any(peak > 0 for _, peak, _, _ in measured)
    assert [each for each in measured if each[1] >= each[2]] == []


@given(st.sampled_from(EVERY_VERSION), st.binary(max_size=200))
@settings(max_examples=800)
def test_garbage_is_refused(target: tuple[type[Message], int], data: bytes) -> None:
    attempt(*target, data)


@given(st.sampled_from(EVERY_VERSION), st.data())
@settings(max_examples=800)
def test_bent_messages_are_refused(target: tuple[type[Message], int], data: st.DataObject) -> None:
    bent = bytearray(whole(*target))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(bent)))
        bent[position : position + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=6))
    attempt(*target, bytes(bent))
