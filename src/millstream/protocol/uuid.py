"""Kafka's 128-bit ids: sixteen bytes, written as unpadded URL-safe base64."""

from __future__ import annotations

import base64
from typing import Self


class Uuid(bytes):
    """Compares and hashes as its sixteen bytes; `str()` is what Kafka's tools print."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        if len(raw) != 16:
            raise ValueError(f"{text!r} is not a Kafka id: it has {len(raw)} bytes instead of 16")
        return cls(raw)

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self).rstrip(b"=").decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid({self!s})"


ZERO_UUID = Uuid(bytes(16))
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
# Directory ids below 100 are reserved; these three have a meaning (KIP-858).
DIRECTORY_UNASSIGNED = ZERO_UUID
DIRECTORY_LOST = Uuid(bytes(15) + b"\x01")
DIRECTORY_MIGRATING = Uuid(bytes(15) + b"\x02")
