"""What the members written in Python share: their arguments, their JSON lines, and when to stop."""

from __future__ import annotations

import json
import sys
import threading
from typing import NamedTuple


class Arguments(NamedTuple):
    servers: str
    group: str
    topics: list[str]
    strategy: str
    instance_id: str | None

    @classmethod
    def given(cls) -> Arguments:
        servers, group, topics, strategy, instance_id = sys.argv[1:]
        return cls(servers, group, topics.split(","), strategy, instance_id or None)

    @property
    def pattern(self) -> str | None:
        return self.topics[0] if self.topics[0].startswith("^") else None


class Voice:
    """Says what changed, once."""

    def __init__(self) -> None:
        self._owned: list[tuple[str, int]] | None = None

    def owns(self, places: list[tuple[str, int]]) -> None:
        if sorted(places) != self._owned:
            self._owned = sorted(places)
            print(json.dumps({"owned": self._owned}), flush=True)

    def read(self, topic: str, partition: int, offset: int, value: bytes | None) -> None:
        print(json.dumps({"read": [topic, partition, offset, (value or b"").decode()]}), flush=True)


def stop_event() -> threading.Event:
    """Set once whoever started this process closes its stdin."""
    stop = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=watch, daemon=True).start()
    return stop
