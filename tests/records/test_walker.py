"""The walker believes nothing, and is the same module with and without a compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.records import NATIVE, _walker
from tests.records.conftest import PLAIN
from tests.records.strategies import mangled, record_lists
from tests.support.batches import Record, encode_records, varint
from tests.support.requirements import unavailable

if TYPE_CHECKING:
    from types import ModuleType

EVER = (-(2**63), 2**63 - 1)


def outcome(call: Any, *arguments: object) -> object:
    """What a call gives, or how it fails: the same in both forms."""
    try:
        return call(*arguments)
    except ValueError as error:
        return type(error).__name__, str(error)


def test_the_walker_is_compiled_where_the_tests_run() -> None:
    if not NATIVE:
        unavailable("the walker is not compiled: both forms under test are plain Python")
    assert str(PLAIN.__file__).endswith(".py")


@given(record_lists)
def test_what_is_encoded_is_decoded(records: list[Any]) -> None:
    base = records[0][3]
    payload = _walker.encode(records, base)
    assert payload == PLAIN.encode(records, base)
    assert payload == encode_records([Record(value, key, pairs, stamp) for key, value, pairs, stamp in records])
    decoded = _walker.decode(payload, len(records), 5, base, -1)
    assert decoded == [(5 + i, r[3], r[0], r[1], tuple(r[2])) for i, r in enumerate(records)]
    code, count, max_timestamp, max_index, keyless, outside = _walker.validate(
        payload, 0, len(payload), len(records), base, *EVER
    )
    stamps = [record[3] for record in records]
    assert (code, count, max_timestamp, outside) == (_walker.OK, len(records), max(stamps), -1)
    assert max_index == (stamps.index(max(stamps)) if max(stamps) >= 0 else -1)
    assert keyless == next((i for i, r in enumerate(records) if r[0] is None), -1)


@given(record_lists, st.data())
def test_both_forms_agree_on_mangled_bytes(records: list[Any], data: st.DataObject) -> None:
    payload = data.draw(mangled(_walker.encode(records, records[0][3])))
    count = data.draw(st.sampled_from([len(records), len(records) - 1, len(records) + 1, 2**31 - 1]))
    base = data.draw(st.sampled_from([records[0][3], 0, -1, 2**63 - 1, -(2**63)]))
    kept = data.draw(st.binary(min_size=len(records), max_size=len(records)))
    for name, arguments in {
        "validate": (payload, 0, len(payload), count, base, 0, 2**45),
        "find_timestamp": (payload, 0, len(payload), count, base, 2**44),
        "decode": (payload, count, 2**63 - 1000, base, -1),
        "keys": (payload, count),
        "retain": (payload, len(records), kept, base, 2**40),
        "murmur2": (payload,),
    }.items():
        native = outcome(getattr(_walker, name), *arguments)
        assert native == outcome(getattr(PLAIN, name), *arguments), name


@given(st.binary(max_size=200), st.integers(0, 2**31 - 1))
def test_both_forms_agree_on_noise(noise: bytes, count: int) -> None:
    for name, arguments in {
        "validate": (noise, 0, len(noise), count, 0, *EVER),
        "decode": (noise, count, 0, 0, -1),
        "keys": (noise, count),
    }.items():
        assert outcome(getattr(_walker, name), *arguments) == outcome(getattr(PLAIN, name), *arguments), name


def test_every_cut_of_a_batch_is_refused(walker: ModuleType) -> None:
    payload = walker.encode([(b"key", b"value" * 30, [("h", b"1"), ("n", None)], 7), (None, None, [], 9)], 7)
    for size in range(len(payload)):
        assert walker.validate(payload, 0, size, 2, 7, *EVER)[0] in (walker.MALFORMED, walker.TRUNCATED)
        with pytest.raises(walker.BrokenRecords):
            walker.decode(payload[:size], 2, 0, 7, -1)


@pytest.mark.parametrize(("position", "limit"), [(-1, 4), (0, 5), (0, 2**40)])
def test_the_limit_has_to_lie_in_the_buffer(walker: ModuleType, position: int, limit: int) -> None:
    with pytest.raises(IndexError):
        walker.validate(b"\0\0\0\0", position, limit, 1, 0, *EVER)
    with pytest.raises(IndexError):
        walker.find_timestamp(b"\0\0\0\0", position, limit, 1, 0, 0)


def test_a_limit_before_the_position_holds_no_record(walker: ModuleType) -> None:
    assert walker.validate(b"\0\0\0\0", 3, 1, 1, 0, *EVER)[0] == walker.TRUNCATED


def record(body: bytes) -> bytes:
    return varint(len(body)) + body


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"\0\0\0\x01\x01\0", 0, id="the smallest record"),
        pytest.param(b"\0" + b"\x80" * 9 + b"\0" + b"\0\x01\x01\0", 0, id="a varlong of ten bytes"),
        pytest.param(b"\0" + b"\x80" * 10 + b"\0" + b"\0\x01\x01\0", 1, id="a varlong of eleven bytes"),
        pytest.param(b"\0\0" + b"\x80" * 4 + b"\0" + b"\x01\x01\0", 0, id="a varint of five bytes"),
        pytest.param(b"\0\0" + b"\x80" * 5 + b"\0" + b"\x01\x01\0", 1, id="a varint of six bytes"),
        pytest.param(b"\0\0" + b"\x80" * 4 + b"\x70" + b"\x01\x01\0", 0, id="bits beyond 32 fall off"),
        pytest.param(b"\0\0\x02\x01\x01\0", 4, id="an offset delta of 1 at first"),
        pytest.param(b"\0\0\0\x09\x01\0", 0, id="a key size of -5 is null, as in Kafka"),
        pytest.param(b"\0\0\0\x02\x01\0", 1, id="a key that swallows what follows"),
        pytest.param(b"\0\0\0\x01" + varint(2**31 - 1) + b"\0", 1, id="a value of 2 GB"),
        pytest.param(b"\0\0\0\x01\x01\x01", 1, id="-1 headers"),
        pytest.param(b"\0\0\0\x01\x01" + varint(2**31 - 1), 1, id="two thousand million headers"),
        pytest.param(b"\0\0\0\x01\x01\x02\x01\x01", 1, id="a header without a name"),
        pytest.param(b"\0\0\0\x01\x01\x02\0\x01", 0, id="a header with an empty name and no value"),
        pytest.param(b"\0\0\0\x01\x01\0\0", 1, id="a byte too many in the record"),
        pytest.param(b"", 1, id="an empty record"),
    ],
)
def test_one_record(walker: ModuleType, body: bytes, code: int) -> None:
    payload = record(body)
    assert walker.validate(payload, 0, len(payload), 1, 0, *EVER)[0] == code


def test_a_negative_size_is_malformed(walker: ModuleType) -> None:
    assert walker.validate(b"\x01\0\0\x01\x01\0", 0, 6, 1, 0, *EVER)[0] == walker.MALFORMED


@pytest.mark.parametrize(("base", "delta"), [(2**63 - 1, 1), (-(2**63), -1), (2**62, 2**62), (-2, -(2**63))])
def test_a_timestamp_beyond_64_bits_is_refused(walker: ModuleType, base: int, delta: int) -> None:
    payload = record(b"\0" + varint(delta) + b"\0\x01\x01\0")
    assert walker.validate(payload, 0, len(payload), 1, base, *EVER)[0] == walker.OVERFLOW


def test_bytes_after_the_last_record_are_refused(walker: ModuleType) -> None:
    payload = walker.encode([(b"k", b"v", [], 0)], 0) + b"\0"
    assert walker.validate(payload, 0, len(payload), 1, 0, *EVER)[0] == walker.TRAILING


@given(record_lists, st.integers(0, 2**63 - 1))
def test_the_first_record_that_is_not_older_is_found(records: list[Any], target: int) -> None:
    base = records[0][3]
    payload = _walker.encode(records, base)
    expected = next(((i, r[3]) for i, r in enumerate(records) if r[3] >= target), (-1, -1))
    assert _walker.find_timestamp(payload, 0, len(payload), len(records), base, target) == expected


def test_header_names_that_are_not_utf8_are_shown_with_replacements(walker: ModuleType) -> None:
    payload = record(b"\0\0\0\x01\x01\x02\x02\xff\x01")
    (decoded,) = walker.decode(payload, 1, 0, 0, -1)
    assert decoded.headers == (("�", None),)
