"""Recovery takes the whole valid batches of a file, and nothing after them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.records.batch import read_header
from millstream.records.building import assemble, empty_batch, encode_batch
from millstream.records.scanning import scan_batches
from tests.records.strategies import mangled


def log_of(*counts: int) -> tuple[bytes, list[int]]:
    """Batches of so many records one after the other, and where each begins."""
    out = bytearray()
    positions = []
    offset = 0
    for count in counts:
        positions.append(len(out))
        out += encode_batch([(b"k", b"v" * 10, [], 5)] * count, base_offset=offset)
        offset += count
    return bytes(out), positions


def test_every_whole_batch_is_found() -> None:
    log, positions = log_of(1, 3, 2)
    scan = scan_batches(log)
    assert [position for position, _ in scan.batches] == positions
    assert [header.base_offset for _, header in scan.batches] == [0, 1, 4]
    assert (scan.end, scan.missing_bytes, scan.corruption) == (len(log), 0, None)


def test_a_chunk_that_ends_within_a_batch_says_how_much_is_missing() -> None:
    log, positions = log_of(2, 2)
    for cut in range(positions[1] + 1, len(log)):
        scan = scan_batches(log[:cut])
        assert len(scan.batches) == 1
        assert (scan.end, scan.corruption) == (positions[1], None)
        assert 0 < scan.missing_bytes <= len(log) - cut
    again = scan_batches(log, positions[1], next_offset=2)
    assert (len(again.batches), again.end) == (1, len(log))


def test_a_flipped_bit_ends_the_scan_before_its_batch() -> None:
    log, positions = log_of(1, 1, 1)
    for at in range(positions[1], positions[2]):
        if positions[1] + 12 <= at < positions[1] + 16:
            continue  # the leader epoch is outside of the CRC
        torn = bytearray(log)
        torn[at] ^= 0x40
        scan = scan_batches(torn)
        if at < positions[1] + 8:  # the base offset is outside of it too: only its order can tell
            assert scan.end >= positions[1]
            continue
        assert scan.end == positions[1]
        assert scan.corruption is not None or scan.missing_bytes > 0


def test_offsets_have_to_grow_and_gaps_are_fine() -> None:
    first = encode_batch([(b"k", b"v", [], 5)], base_offset=10)
    assert scan_batches(first + first).corruption is not None
    assert scan_batches(first, next_offset=11).corruption is not None
    later = encode_batch([(b"k", b"v", [], 5)], base_offset=2**40)
    assert scan_batches(first + later).corruption is None


def test_a_compacted_log_has_empty_batches() -> None:
    header = read_header(encode_batch([(b"k", b"v", [], 5)] * 4, base_offset=3))
    scan = scan_batches(empty_batch(header))
    assert scan.batches[0][1].count == 0
    assert scan.batches[0][1].next_offset == 7


@pytest.mark.parametrize(
    "fields",
    [
        {"last_offset_delta": -1},
        {"count": 5},
        {"count": -1},
        {"base_offset": -1},
        {"base_offset": 2**63 - 1},
        {"magic": 1},
    ],
    ids=str,
)
def test_a_header_that_cannot_be_is_corrupt_even_with_its_crc(fields: dict[str, int]) -> None:
    batch = encode_batch([(b"k", b"v", [], 5)] * 2)
    assert scan_batches(assemble(read_header(batch)._replace(**fields), batch[61:])).corruption is not None


def test_a_length_beyond_the_largest_batch_is_corrupt_and_not_missing() -> None:
    batch = encode_batch([(b"k", b"v", [], 5)])
    batch[8:12] = (2**31 - 1).to_bytes(4, "big")
    assert scan_batches(batch, batch_bytes_max=1 << 20).corruption is not None


@given(st.data())
def test_any_bytes_give_a_prefix_of_whole_batches(data: st.DataObject) -> None:
    log, _ = log_of(1, 2, 3)
    scan = scan_batches(data.draw(mangled(log)), batch_bytes_max=1 << 20)
    assert scan.end == sum(header.size for _, header in scan.batches)
