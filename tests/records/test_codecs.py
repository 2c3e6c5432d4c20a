"""Codecs: what goes in comes out, and nothing that comes in decides how much memory is taken."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.protocol.errors import CorruptMessage, RecordTooLarge, UnsupportedCompression
from millstream.records.codecs import LEVELS, Codec, Limits, compress, decompress
from tests.records.strategies import mangled
from tests.support.alone import run_alone

COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
payloads = st.one_of(
    st.binary(max_size=300),
    st.builds(lambda part, n: part * n, st.binary(min_size=1, max_size=50), st.integers(0, 5000)),
)


@given(payloads, st.sampled_from(list(Codec)))
def test_what_is_compressed_comes_back(payload: bytes, codec: Codec) -> None:
    assert bytes(decompress(codec, compress(codec, payload), Limits(1 << 24, 1 << 20))) == payload


@pytest.mark.parametrize("codec", sorted(LEVELS))
def test_every_level_can_be_read(codec: Codec) -> None:
    lowest, highest, default = LEVELS[codec]
    payload = b"the same again and again " * 500
    for level in (lowest, default, highest):
        assert bytes(decompress(codec, compress(codec, payload, level))) == payload


def test_raw_snappy_is_read_too() -> None:
    payload = b"as librdkafka writes it " * 100
    assert bytes(decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(payload)))) == payload


@given(payloads, st.sampled_from(COMPRESSING), st.data())
def test_garbage_raises_one_declared_error(payload: bytes, codec: Codec, data: st.DataObject) -> None:
    garbage = data.draw(mangled(compress(codec, payload)))
    with suppress(CorruptMessage, RecordTooLarge):
        decompress(codec, garbage, Limits(1 << 20, 100))


@given(st.binary(max_size=100), st.sampled_from(COMPRESSING))
def test_noise_raises_one_declared_error(noise: bytes, codec: Codec) -> None:
    with suppress(CorruptMessage, RecordTooLarge):
        decompress(codec, noise, Limits(1 << 20, 100))


@pytest.mark.parametrize("codec", COMPRESSING)
def test_an_empty_payload_is_corrupt_or_empty(codec: Codec) -> None:
    with pytest.raises(CorruptMessage):
        decompress(codec, b"")


def memory_of_refused_bombs() -> dict[str, int]:
    """For each codec: the bytes at the peak while a bomb of 64 MB is refused."""
    peaks = {}
    for codec in COMPRESSING:
        bomb = compress(codec, bytes(64 << 20))
        tracemalloc.start()
        with pytest.raises(RecordTooLarge):
            decompress(codec, bomb, Limits(bytes_max=1 << 20, ratio_max=1 << 20))
        peaks[codec.name] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peaks


def test_a_bomb_is_refused_before_its_memory_is_taken() -> None:
    """Bug 56."""
    peaks = run_alone(memory_of_refused_bombs)
    assert len(peaks) == len(COMPRESSING)
    assert {codec: peak for codec, peak in peaks.items() if peak >= 8 << 20} == {}


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_the_ratio_is_bounded_as_well_as_the_size(codec: Codec) -> None:
    """Bug 56."""
    bomb = compress(codec, bytes(16 << 20))
    with pytest.raises(RecordTooLarge):
        decompress(codec, bomb, Limits(bytes_max=1 << 30, ratio_max=50))


@pytest.mark.parametrize("codec", COMPRESSING)
def test_the_limit_itself_is_allowed(codec: Codec) -> None:
    payload = bytes(range(256)) * 1024
    stored = compress(codec, payload)
    limits = Limits(bytes_max=len(payload), ratio_max=1 << 20)
    assert bytes(decompress(codec, stored, limits)) == payload
    with pytest.raises(RecordTooLarge):
        decompress(codec, stored, limits._replace(bytes_max=len(payload) - 1))


def test_a_snappy_block_that_announces_4_gb_is_refused_unread() -> None:
    """Bug 56, CVE-2023-34455."""
    with pytest.raises(RecordTooLarge):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(20))


@pytest.mark.parametrize("tail", [b"\0", b"\0\0\0\x05abc", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"])
def test_xerial_blocks_must_fit(tail: bytes) -> None:
    with pytest.raises(CorruptMessage):
        decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"hello") + tail)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_there_are_no_other_codecs(codec: int) -> None:
    with pytest.raises(UnsupportedCompression):
        decompress(codec, b"x")
    with pytest.raises(UnsupportedCompression):
        compress(codec, b"x")
