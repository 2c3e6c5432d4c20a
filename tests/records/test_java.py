"""Apache Kafka reads what is written here, and the other way round, in every codec.

`java_batches.txt` holds what Java wrote; its first line is the command. Where Java and the jars are at hand, the same
program also reads our batches and says how Kafka's own validation would answer to them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.protocol.errors import BrokerError
from millstream.records.batch import LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, Record, read_header
from millstream.records.building import assemble, encode_batch, end_transaction_marker
from millstream.records.codecs import Codec, compress
from millstream.records.partitioning import murmur2, partition_for_key
from millstream.records.reading import control_record, decode_records, payload_of
from millstream.records.rewriting import recompress, rewrite_batch
from millstream.records.validation import Rules, check_batch
from tests.records.strategies import mangled, record_lists
from tests.support.apache_kafka import java_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
NOW_MS = 2_000
T0 = 1_700_000_000_000
CAPTURED = [line.split("\t") for line in (HERE / "java_batches.txt").read_text().splitlines() if line[0] != "#"]
BATCHES = {line[0]: bytes.fromhex(line[1]) for line in CAPTURED if line[0] != "murmur2"}


def what_java_wrote(count: int) -> list[Record]:
    first = Record(7, T0, b"key", b"value", (("trace", b"\1\2\3"), ("none", None), ("", b"")))
    second = Record(8, T0 - 1000, None, b"")
    third = Record(9, T0 + 90_000_000_000, b"", None)
    text = b"some text that repeats itself, number %d"
    return [first, second, third, *(Record(10 + i, T0 + i, b"k%d" % (i % 10), text % i) for i in range(count))]


@pytest.mark.parametrize("codec", list(Codec))
def test_what_java_compressed_is_read_here(codec: Codec) -> None:
    batch = BATCHES[codec.name.lower()]
    header = read_header(batch)
    assert (header.codec, header.producer_id, header.producer_epoch, header.base_sequence) == (codec, 11, 3, 41)
    assert header.leader_epoch == 5
    assert decode_records(batch, check_crc=True) == what_java_wrote(20 if codec == Codec.NONE else 2000)


def test_markers_are_javas_byte_by_byte() -> None:
    commit = end_transaction_marker(
        commit=True,
        producer_id=77,
        producer_epoch=2,
        coordinator_epoch=13,
        timestamp=T0,
        base_offset=9,
        leader_epoch=4,
    )
    assert bytes(commit) == BATCHES["commit"]
    assert control_record(BATCHES["abort"])[:2] == (0, 14)


@pytest.mark.parametrize(("key", "hashed"), [line[1:] for line in CAPTURED if line[0] == "murmur2"])
def test_keys_hash_as_in_java(key: str, hashed: str) -> None:
    assert murmur2(key.encode()) == int(hashed) & 0xFFFFFFFF
    assert partition_for_key(key.encode(), 7) == (int(hashed) & 0x7FFFFFFF) % 7


class Java:
    """The program beside this file, answering line by line."""

    def __init__(self, mode: str) -> None:
        self._process = subprocess.Popen(
            [*java_command(str(HERE / "Batches.java")), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def close(self) -> None:
        self._process.communicate(timeout=120)


@pytest.fixture(scope="module")
def java() -> Iterator[Callable[[str], Java]]:
    running: dict[str, Java] = {}

    def start(mode: str) -> Java:
        if mode not in running:
            running[mode] = Java(mode)
        return running[mode]

    yield start
    for each in running.values():
        each.close()


def as_java_prints(records: list[Record]) -> str:
    def hexed(content: bytes | None) -> str:
        return "null" if content is None else content.hex()

    return "".join(
        " ".join(
            (
                *(str(record.offset), str(record.timestamp), hexed(record.key), hexed(record.value)),
                *(f"{name.encode().hex()}={hexed(value)}" for name, value in record.headers),
            )
        )
        + ";"
        for record in records
    )


@pytest.mark.java
@pytest.mark.parametrize("codec", list(Codec))
def test_what_is_compressed_here_is_read_by_java(java: Callable[[str], Java], codec: Codec) -> None:
    records = [(b"k%d" % i, b"text that repeats %d" % i * 20, [("h", b"1"), ("n", None)], T0 + i) for i in range(900)]
    batch = encode_batch(records, base_offset=3, codec=codec)
    assert java("read").ask(batch.hex()) == as_java_prints(decode_records(batch))


@pytest.mark.java
@pytest.mark.parametrize("codec", list(Codec))
def test_java_reads_rewritten_and_recompressed_batches(java: Callable[[str], Java], codec: Codec) -> None:
    batch = BATCHES[codec.name.lower()]
    header = read_header(batch)
    kept = bytes(i % 3 == 0 for i in range(header.count))
    rewritten = rewrite_batch(header, payload_of(batch, 0, header), kept, delete_horizon_ms=T0 + 5)
    records = [record for i, record in enumerate(decode_records(batch)) if i % 3 == 0]
    assert java("read").ask(rewritten.hex()) == as_java_prints(records)
    for other in Codec:
        assert java("read").ask(recompress(batch, 0, other).hex()) == as_java_prints(decode_records(batch))


def verdicts(java: Java, batch: bytes, rules: Rules) -> tuple[str, str]:
    """(ours, Kafka's): the error's name and the indices of the bad records, or NONE."""
    try:
        check_batch(batch, 0, len(batch), rules, NOW_MS)
        ours = "NONE"
    except BrokerError as refused:
        ours = " ".join([refused.code.name, *(str(index) for index, _ in getattr(refused, "record_errors", []))])
    flags = f"{int(rules.compacted)}\t{int(rules.log_append_time)}"
    bounds = f"{rules.timestamp_before_max_ms}\t{rules.timestamp_after_max_ms}\t{NOW_MS}"
    return ours, java.ask(f"{batch.hex()}\t{flags}\t{bounds}")


rules_of_a_topic = st.builds(
    lambda compacted, log_append_time, before, after: Rules(
        compacted=compacted,
        log_append_time=log_append_time,
        timestamp_before_max_ms=before,
        timestamp_after_max_ms=after,
    ),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 1_000, 2**63 - 1]),
    st.sampled_from([0, 1_000, 2**45, 2**63 - 1 - NOW_MS]),
)


@pytest.mark.java
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    record_lists,
    st.sampled_from(list(Codec)),
    rules_of_a_topic,
    st.data(),
)
def test_validation_answers_as_kafka_does(
    java: Callable[[str], Java], records: list[object], codec: Codec, rules: Rules, data: st.DataObject
) -> None:
    """On honest and on mangled batches: the same code, the same records named, apart from where Kafka is careless."""
    honest = encode_batch(records, codec=codec)  # type: ignore[arg-type]
    header = read_header(honest)
    how = data.draw(st.sampled_from(["honest", "inside", "stored", "header", "bytes"]))
    batch = bytes(honest)
    if how == "inside":
        batch = bytes(assemble(header, compress(codec, data.draw(mangled(payload_of(honest, 0, header))))))
    elif how == "stored":
        batch = bytes(assemble(header, data.draw(mangled(bytes(honest[61:])))))
    elif how == "header":
        lie = data.draw(st.sampled_from(["count", "last_offset_delta", "producer_id", "base_sequence", "base_offset"]))
        batch = bytes(assemble(header._replace(**{lie: data.draw(st.integers(-2, 30))}), honest[61:]))
    elif how == "bytes":
        batch = data.draw(mangled(bytes(honest)))
    ours, kafkas = verdicts(java("validate"), batch, rules)
    if kafkas == "UNKNOWN_SERVER_ERROR":
        assert ours != "NONE"
    elif kafkas == "NONE":
        assert ours == "NONE" or kafka_is_careless(batch)
    elif ours != "NONE" and codec != Codec.NONE and how in ("stored", "bytes"):
        pass  # broken compression is CORRUPT_MESSAGE here; in Kafka it depends on where its stream notices
    elif how == "bytes" and ours != "NONE" and len(batch) >= 61 and read_header(batch).size != len(batch):
        pass  # a remainder that is no batch is refused here; Kafka drops it and judges what came before
    else:
        assert ours == kafkas


def kafka_is_careless(batch: bytes) -> bool:
    """The documented differences: what Kafka lets in, and no client sends."""
    header = read_header(batch)
    if header.attributes & (LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT) or header.size != len(batch):
        return True
    if header.producer_id >= 0 and header.producer_epoch < 0:
        return True
    try:
        decoded = decode_records(batch)
    except BrokerError:
        return True  # a timestamp beyond 64 bits, or bytes after the end of a compressed stream
    return [record.offset for record in decoded] != list(range(header.count))
