"""The settings of the metadata quorum, as typed values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from millstream.quorum.node import QuorumTimeouts
from millstream.quorum.voters import Voter, VoterEndpoint, VoterSet
from millstream.settings import (
    CONTROLLER_LISTENER_NAMES,
    CONTROLLER_QUORUM_AUTO_JOIN_ENABLE,
    CONTROLLER_QUORUM_ELECTION_BACKOFF_MAX_MS,
    CONTROLLER_QUORUM_ELECTION_TIMEOUT_MS,
    CONTROLLER_QUORUM_FETCH_MAX_BYTES,
    CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES,
    CONTROLLER_QUORUM_FETCH_TIMEOUT_MS,
    CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS,
    CONTROLLER_QUORUM_RETRY_BACKOFF_MS,
    PROCESS_ROLES,
)
from millstream.settings.listeners import bootstrap_servers, quorum_voters

if TYPE_CHECKING:
    from millstream.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumConfig:
    """Who the fixed voters are, or where to ask for those of a dynamic quorum; and how long to be patient."""

    voters: tuple[Voter, ...] = ()
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    is_controller: bool = True
    """A broker alone follows the quorum and never votes."""
    listener: str = "CONTROLLER"
    """The name of the listener by which controllers are dialled."""
    auto_join: bool = False
    timeouts: QuorumTimeouts = field(default_factory=QuorumTimeouts)
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    fetch_bytes_max: int = 1 << 20
    snapshot_bytes_max: int = 1 << 20

    @classmethod
    def of(cls, settings: Settings) -> Self:
        listener = settings[CONTROLLER_LISTENER_NAMES][0].upper()
        return cls(
            voters=tuple(
                Voter(voter.id, endpoints=(VoterEndpoint(listener, voter.host, voter.port),))
                for voter in quorum_voters(settings)
            ),
            bootstrap_servers=bootstrap_servers(settings),
            is_controller="controller" in settings[PROCESS_ROLES],
            listener=listener,
            auto_join=settings[CONTROLLER_QUORUM_AUTO_JOIN_ENABLE],
            timeouts=QuorumTimeouts(
                election_ms=settings[CONTROLLER_QUORUM_ELECTION_TIMEOUT_MS],
                backoff_ms_max=settings[CONTROLLER_QUORUM_ELECTION_BACKOFF_MAX_MS],
                fetch_ms=settings[CONTROLLER_QUORUM_FETCH_TIMEOUT_MS],
            ),
            request_timeout_ms=settings[CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS],
            retry_backoff_ms=settings[CONTROLLER_QUORUM_RETRY_BACKOFF_MS],
            fetch_bytes_max=settings[CONTROLLER_QUORUM_FETCH_MAX_BYTES],
            snapshot_bytes_max=settings[CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES],
        )

    def voters_without_a_record(self, node_id: int) -> VoterSet:
        """Who votes where the log does not say: the fixed voters; nobody yet, where others are to be asked; or we."""
        if self.voters:
            return VoterSet(self.voters)
        return VoterSet(() if self.bootstrap_servers or not self.is_controller else (Voter(node_id),))
