"""Mangled bytes at everything that reads what strangers sent: the frame reader, the decoders, the records.

Each round takes something whole, mangles it and hands it over. Allowed are a result that is as good as a whole one (it
can be encoded again; the compiled walker and the plain one agree) or a refusal of the documented kind. Rounds follow
from the seed and their number; a failure prints both and the bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import struct
import sys
import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from millstream.protocol.errors import BrokerError, MalformedMessage
from millstream.protocol.frame_reader import FrameReader
from millstream.protocol.frames import decode_request_header
from millstream.records import _walker
from millstream.records.batch import HEADER_BYTES, stamp_crc
from millstream.records.building import encode_batch
from millstream.records.scanning import scan_batches
from millstream.records.validation import Rules, check_batch
from tests.protocol.catalog import every_version
from tests.protocol.test_frame_reader import feed
from tests.protocol.test_malformed import attempt, whole
from tests.records.conftest import PLAIN
from tests.records.test_walker import outcome

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = list(every_version())
# Lengths, counts and varints as a liar writes them.
LIES = (b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\xff\x0f", b"\xff" * 10, b"\x7f\xff", b"\0", b"\x01", b"\xff")
FRAME_BYTES_MAX = 2_000
whole_message = functools.cache(whole)


def mangled(random: Random, data: bytes) -> bytes:
    """Bytes changed, cut out, put in, or overwritten with lies, in a few places."""
    out = bytearray(data)
    for _ in range(random.randint(1, 5)):
        at = random.randrange(len(out) + 1)
        match random.randrange(5):
            case 0 if at < len(out):
                out[at] ^= 1 << random.randrange(8)
            case 1:
                del out[at : at + random.randint(1, 12)]
            case 2:
                out[at:at] = random.randbytes(random.randint(1, 12))
            case 3:
                lie = random.choice(LIES)
                out[at : at + len(lie)] = lie
            case _:
                del out[at:]
    return bytes(out)


def frames(random: Random) -> bytes:
    """However a stream is cut into reads, frames come out, or the connection is refused."""
    bodies = [random.randbytes(random.randrange(300)) for _ in range(random.randint(1, 8))]
    stream = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    if random.random() < 0.5:
        stream = mangled(random, stream)
    sizes = [random.randint(1, 700) for _ in range(random.randint(1, 6))]
    try:
        found = feed(FrameReader(bytearray(random.choice((16, 64, 4096))), FRAME_BYTES_MAX), stream, sizes)
    except MalformedMessage:
        return stream
    assert b"".join(struct.pack(">i", len(body)) + body for body in found) == stream[: sum(4 + len(b) for b in found)]
    return stream


def messages(random: Random) -> bytes:
    """A message or MalformedMessage."""
    kind, version = random.choice(KINDS)
    data = mangled(random, whole_message(kind, version))
    try:
        attempt(kind, version, data)
    except Exception as error:
        raise AssertionError(f"{kind.__name__} v{version}: {error!r}: {data.hex()}") from error
    return data


def headers(random: Random) -> bytes:
    """A request's header, or MalformedMessage."""
    whole_header = struct.pack(">hhih", random.choice((0, 1, 3, 18)), random.randrange(4), 7, 3) + b"abc\0"
    data = mangled(random, whole_header)
    with contextlib.suppress(MalformedMessage):
        decode_request_header(data)
    return data


def records(random: Random) -> bytes:
    """Both walkers say the same of mangled records, and a mangled batch with a right CRC is refused or whole."""
    count = random.randint(1, 12)
    made = [
        (
            random.choice((None, b"", random.randbytes(random.randrange(40)))),
            random.choice((None, b"", random.randbytes(random.randrange(200)))),
            [(f"h{index}", random.choice((None, b"x"))) for index in range(random.randrange(3))],
            random.randrange(2**44),
        )
        for _ in range(count)
    ]
    codec = random.randrange(5)
    batch = encode_batch(made, codec=codec)
    payload = mangled(random, bytes(batch[HEADER_BYTES:]))
    counted = random.choice((count, count - 1, count + 1, 2**31 - 1))
    for name, arguments in (
        ("validate", (payload, 0, len(payload), counted, made[0][3], 0, 2**45)),
        ("decode", (payload, counted, 0, made[0][3], -1)),
        ("keys", (payload, counted)),
    ):
        native = outcome(getattr(_walker, name), *arguments)
        assert native == outcome(getattr(PLAIN, name), *arguments), f"{name} disagrees on {payload.hex()}"
    bent = bytearray(batch[:HEADER_BYTES]) + payload
    struct.pack_into(">i", bent, 8, len(bent) - 12)
    stamp_crc(bent, 0, len(bent))
    scan_batches(bytes(bent))
    try:
        check_batch(bytes(bent), 0, len(bent), Rules(), 2**44)
    except BrokerError:
        pass
    except Exception as error:
        raise AssertionError(f"{error!r} for {bent.hex()}") from error
    return payload


TARGETS: dict[str, Callable[[Random], bytes]] = {
    "frames": frames,
    "messages": messages,
    "headers": headers,
    "records": records,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.fuzz")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, help="only this one: what a failure named")
    options = parser.parse_args()
    deadline = time.monotonic() + options.minutes * 60
    counted: Counter[str] = Counter()
    names = list(TARGETS)
    number = options.round or 0
    while time.monotonic() < deadline:
        name = names[number % len(names)]
        try:
            TARGETS[name](Random(f"{options.seed}/{number}"))
        except BaseException:
            print(f"{name} failed: seed {options.seed}, round {number}", file=sys.stderr, flush=True)
            raise
        counted[name] += 1
        number += 1
        if options.round is not None:
            break
    print(", ".join(f"{count:,} {name}" for name, count in counted.items()) + " were mangled; all was as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
