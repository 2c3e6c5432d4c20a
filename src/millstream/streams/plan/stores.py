"""State stores, as data: what a node keeps, under which name, and how it becomes bytes.

A store that is logged has a changelog topic `<application id>-<name>-changelog`; compacted, and for windows also
deleted by time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.streams.serdes import Serde


# Kafka Streams' windowstore.changelog.additional.retention.ms
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class KeyValueStore:
    """Key to value; with `timestamped` each value keeps the time of the record that made it."""

    name: str
    key_serde: Serde
    value_serde: Serde
    timestamped: bool = True
    logged: bool = True

    @property
    def cleanup_policy(self) -> str:
        return "compact"

    @property
    def changelog_retention_ms(self) -> None:
        """Nothing in it becomes old."""
        return


@dataclass(frozen=True)
class WindowStore:
    """Key and window start to value, kept for `retention_ms` of stream time."""

    name: str
    key_serde: Serde
    value_serde: Serde
    size_ms: int
    retention_ms: int
    timestamped: bool = True
    duplicates: bool = False
    logged: bool = True

    @property
    def cleanup_policy(self) -> str:
        # With duplicates every entry has a key of its own, so there is nothing to compact.
        return "delete" if self.duplicates else "compact,delete"

    @property
    def changelog_retention_ms(self) -> int:
        """How long the changelog keeps what is in it, counted back from stream time."""
        return self.retention_ms + _DAY_MS


@dataclass(frozen=True)
class SessionStore:
    """Key and session to value, kept for `retention_ms` of stream time."""

    name: str
    key_serde: Serde
    value_serde: Serde
    retention_ms: int
    logged: bool = True

    @property
    def cleanup_policy(self) -> str:
        return "compact,delete"

    @property
    def changelog_retention_ms(self) -> int:
        """How long the changelog keeps what is in it, counted back from stream time."""
        return self.retention_ms + _DAY_MS


Store = KeyValueStore | WindowStore | SessionStore
