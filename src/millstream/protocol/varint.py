"""Unsigned variable-length integers: seven bits a byte, the lowest first.

In messages they are lengths, counts and tags, so nothing above 2**31 - 1 makes sense, and five bytes hold it. The
compiled decoders handle single bytes by themselves and come here for the rest.
"""

from __future__ import annotations

from millstream.protocol.errors import MalformedMessage

Buffer = bytes | bytearray | memoryview


def encode_uvarint(value: int) -> bytes:
    """Encode an integer of at least zero."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Decode one integer; the answer has the position after it. Raises IndexError at the end of the buffer."""
    first = buffer[position]
    return (first, position + 1) if first < 128 else uvarint_rest(buffer, position + 1, first)


def uvarint_rest(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Decode what follows a first byte above 127."""
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0x7FFFFFFF:
                break
            return value, position
    raise MalformedMessage("a variable-length integer is too long")
