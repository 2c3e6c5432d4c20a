"""The four codecs of Kafka's record batches, bounded on the way out.

Each is cramjam's, and releases the GIL while it works, so large payloads may go to a thread. What was sent decides
nothing about memory: the output goes into a buffer of ours that grows up to a limit and no further, and the limit is
the smaller of a size and of a multiple of the input. Sizes that the input itself announces serve as a first guess.

What Java insists on when it reads: lz4 in frames of independent blocks, snappy in xerial's framing (32 KB blocks, each
behind its length) or as one raw block. Snappy is written in xerial's framing, which every client reads.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import cramjam

from millstream.protocol.errors import CorruptMessage, RecordTooLarge, UnsupportedCompression

if TYPE_CHECKING:
    from collections.abc import Callable

    Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The codec bits of a batch's attributes; the names in lower case are the values of `compression.type`."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Limits(NamedTuple):
    """How far a payload may grow: in bytes, and as a multiple of its compressed size."""

    bytes_max: int
    ratio_max: int

    def of(self, compressed_bytes: int) -> int:
        """What a payload of this size may become. Honest ones may be all repetition, so the ratio starts at 8 MB."""
        return min(self.bytes_max, max(compressed_bytes * self.ratio_max, _RATIO_FLOOR_BYTES))


_RATIO_FLOOR_BYTES: Final = 8 * 1024 * 1024
DEFAULT_LIMITS: Final = Limits(bytes_max=256 * 1024 * 1024, ratio_max=1_000)

LEVELS: Final = {Codec.GZIP: (1, 9, 6), Codec.LZ4: (1, 17, 9), Codec.ZSTD: (-131072, 22, 3)}
"""(lowest, highest, default) as in Kafka's `compression.<codec>.level`; snappy has none."""

_GZIP_DEFAULT: Final = -1
_LZ4_FAST: Final = 1

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_INT32: Final = Struct(">i")
_GZIP_SIZE: Final = Struct("<I")


def compress(codec: int, payload: Buffer, level: int | None = None) -> bytes:
    """`payload` compressed so that Java reads it; the level is Kafka's, None its default."""
    if codec == Codec.NONE:
        return bytes(payload)
    if codec == Codec.SNAPPY:
        return _compress_xerial(payload)
    if codec not in LEVELS:
        raise UnsupportedCompression(f"there is no codec {codec}")
    default = LEVELS[Codec(codec)][2]
    chosen = default if level is None or (codec == Codec.GZIP and level == _GZIP_DEFAULT) else level
    if codec == Codec.LZ4:
        # Kafka's default level means lz4's fast compressor, any other its high compressor, whose scale here is 3-12.
        scaled = _LZ4_FAST if chosen == default else max(3, min(chosen, 12))
        lz4 = cramjam.lz4.Compressor(level=scaled, content_checksum=False, block_linked=False)
        lz4.compress(bytes(payload))  # no copy if it is bytes, and it must be
        return bytes(lz4.finish())
    module = cramjam.gzip if codec == Codec.GZIP else cramjam.zstd
    return bytes(module.compress(payload, level=chosen))


def decompress(codec: int, payload: Buffer, limits: Limits = DEFAULT_LIMITS) -> Buffer:
    """What was compressed. CorruptMessage if it is garbage, RecordTooLarge if it would outgrow the limits."""
    limit_bytes = limits.of(len(payload))
    if codec == Codec.NONE:
        return payload
    if codec == Codec.GZIP:
        guess = _GZIP_SIZE.unpack_from(payload, len(payload) - 4)[0] if len(payload) >= 18 else 0
        return _grow_into(cramjam.gzip.decompress_into, payload, guess, limit_bytes)
    if codec == Codec.SNAPPY:
        return _decompress_snappy(payload, limit_bytes)
    if codec == Codec.LZ4:
        return _grow_into(cramjam.lz4.decompress_into, payload, 0, limit_bytes)
    if codec == Codec.ZSTD:
        return _grow_into(cramjam.zstd.decompress_into, payload, 0, limit_bytes)
    raise UnsupportedCompression(f"there is no codec {codec}")


def _grow_into(call: Callable[[Any, Any], int], payload: Buffer, guess: int, limit_bytes: int) -> bytearray:
    """Decompress into a buffer that is made anew, four times as large, until the output fits or the limit is met."""
    capacity = min(max(guess, 4 * len(payload), 4096), limit_bytes)
    while True:
        out = bytearray(capacity)
        try:
            size = call(payload, out)
        except cramjam.DecompressionError as error:
            if "failed to write whole buffer" not in str(error):
                raise CorruptMessage(f"the batch cannot be decompressed: {error}") from error
        else:
            del out[size:]
            return out
        if capacity >= limit_bytes:
            raise RecordTooLarge(f"the batch decompresses to more than {limit_bytes} bytes")
        capacity = min(capacity * 4, limit_bytes)
        # Before the larger one is made: both at once would exceed what the limit promises.
        del out


def _compress_xerial(payload: Buffer) -> bytes:
    parts: list[bytes] = [_XERIAL_HEADER]
    with memoryview(payload) as view:
        for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
            parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(payload: Buffer, limit_bytes: int) -> Buffer:
    """Raw or xerial; every snappy block says its size in front, so each is checked before it is made."""
    with memoryview(payload) as view:
        if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
            return _snappy_block(view, limit_bytes)
        out = bytearray()
        position = len(_XERIAL_HEADER)
        while position < len(view):
            if len(view) - position < _INT32.size:
                raise CorruptMessage("the snappy blocks end within a length")
            (size,) = _INT32.unpack_from(view, position)
            position += _INT32.size
            if size < 0 or size > len(view) - position:
                raise CorruptMessage(f"a snappy block of {size} bytes does not fit the batch")
            out += _snappy_block(view[position : position + size], limit_bytes - len(out))
            position += size
        return out


def _snappy_block(block: memoryview, limit_bytes: int) -> bytearray:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit_bytes:
            raise RecordTooLarge("the batch decompresses to more than the limit")
        out = bytearray(size)
        if cramjam.snappy.decompress_raw_into(block, out) != size:
            raise CorruptMessage("a snappy block is shorter than it says")
    except cramjam.DecompressionError as error:
        raise CorruptMessage(f"the batch cannot be decompressed: {error}") from error
    return out
