"""Producers that compress, which most do: JSON of 150 bytes, each codec at Kafka's default level.

A broker that validates records has to decompress them; the broker of the limit does not look inside a batch. What is
compressed is what ProducerPerformance picks at random from ten thousand different lines.
"""

from __future__ import annotations

import json
import random
from functools import partial
from typing import TYPE_CHECKING

from bench.rows import Bar, Figures, Row
from bench.throughput import ALL, BATCHED, produced

if TYPE_CHECKING:
    from pathlib import Path

    from bench.session import Session

CODECS = ("lz4", "snappy", "zstd", "gzip")
LINES = 10_000
VALUE_BYTES = 150
# The same lines in every run.
SEED = 20260


def json_lines(path: Path) -> None:
    """Events of a shop, each of exactly the same size."""
    picked = random.Random(SEED)
    with path.open("w") as file:
        for _ in range(LINES):
            event = {
                "event": picked.choice(("view", "basket", "order", "payment")),
                "customer": f"customer-{picked.randrange(100_000):06d}",
                "article": f"article-{picked.randrange(20_000):05d}",
                "cents": picked.randrange(100, 100_000),
                "at": f"2026-11-{picked.randrange(10, 30)}T{picked.randrange(10, 24)}:{picked.randrange(10, 60)}:00Z",
            }
            said = json.dumps({**event, "note": ""}, separators=(",", ":"))
            filling = "".join(picked.choices("abcdefghijklmnopqrstuvwxyz ", k=VALUE_BYTES - len(said)))
            file.write(json.dumps({**event, "note": filling}, separators=(",", ":")) + "\n")


def produce(session: Session, name: str, codec: str) -> Figures:
    lines = session.folder("json-") / "lines"
    json_lines(lines)
    # As many as each client compresses in about five seconds.
    count = session.amount(1_000_000 if codec == "gzip" else 4_000_000, 50_000)
    return produced(session, name, count, lines, BATCHED | {"compression.type": codec})


ROWS = tuple(
    Row(
        f"produce-{codec}",
        f"ProducerPerformance, {codec}, JSON of {VALUE_BYTES} B, 6 partitions, acks=all, batch 64 KB, linger 5 ms",
        partial(produce, codec=codec),
        (Bar("records/s", "records/s", of_limit_at_least=0.9), Bar("broker CPU s", "CPU s", ratio_at_most=0.5)),
        contenders=ALL,
    )
    for codec in CODECS
)
