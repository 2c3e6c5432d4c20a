"""Who voted from which offset on.

A VotersRecord counts from the moment it is appended, committed or not (KIP-853), so a log that is cut off gives back
the voters before it; and a snapshot must name those of its own offset, not the newest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.quorum.voters import STATIC

if TYPE_CHECKING:
    from millstream.quorum.voters import VoterSet

FROM_THE_BEGINNING = -1


@dataclass(frozen=True, slots=True)
class VotersAt:
    """The voters, and kraft.version, that a record at `offset` says; from the configuration if that is -1."""

    offset: int
    kraft_version: int
    voters: VoterSet


class VoterHistory:
    """Begins with the voters of the configuration (or of the first snapshot); see the module's docstring."""

    def __init__(self, voters: VoterSet, kraft_version: int = STATIC, offset: int = FROM_THE_BEGINNING) -> None:
        self._entries = [VotersAt(offset, kraft_version, voters)]

    @property
    def latest(self) -> VotersAt:
        return self._entries[-1]

    @property
    def former(self) -> VoterSet | None:
        """The voters before the latest ones, as far as they are remembered."""
        latest = self.latest.voters
        return next((entry.voters for entry in reversed(self._entries) if entry.voters != latest), None)

    def add_voters(self, offset: int, voters: VoterSet) -> None:
        self._add(replace(self.latest, offset=offset, voters=voters))

    def add_version(self, offset: int, kraft_version: int) -> None:
        self._add(replace(self.latest, offset=offset, kraft_version=kraft_version))

    def _add(self, entry: VotersAt) -> None:
        assert entry.offset > self.latest.offset, "voters are noted in the order of the log"
        self._entries.append(entry)

    def at(self, offset: int) -> VotersAt:
        """As of the record at `offset`, it included."""
        return next((entry for entry in reversed(self._entries) if entry.offset <= offset), self._entries[0])

    def truncate(self, end_offset: int) -> None:
        """The log ends before `end_offset` now."""
        while len(self._entries) > 1 and self.latest.offset >= end_offset:
            self._entries.pop()

    def forget_before(self, offset: int) -> None:
        """A snapshot covers what is before `offset`."""
        while len(self._entries) > 1 and self._entries[1].offset < offset:
            self._entries.pop(0)
