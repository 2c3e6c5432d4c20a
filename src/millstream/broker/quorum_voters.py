"""Changing who votes, one voter at a time (KIP-853): the leader's side.

A new set of voters counts from the moment its record is in the log. Two changes at once could make two majorities that
don't overlap, so the next one has to wait until the last one is committed, and the first one until the leader has
committed something of its own epoch. A voter is added only when it can be reached and has caught up: else the quorum
would wait for it with every commit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.broker.peers import PeerUnreachable
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.vote import VoteRequest
from millstream.quorum.events import Answer, VoterIntroduced
from millstream.quorum.leading import OBSERVER_FORGOTTEN_MS
from millstream.quorum.roles import Leader, ReplicaKey
from millstream.quorum.upgrade import UpgradeRefused
from millstream.quorum.voters import DYNAMIC, STATIC, Voter, VoterSet
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from millstream.broker.metadata_log import MetadataLog
    from millstream.broker.peers import Peers
    from millstream.quorum.voters import VoterEndpoint
    from millstream.runtime.ports import Ports


_log = Logger("millstream.quorum")


class VoterChangeRefused(Exception):
    """The voters stay as they are; `code` and the sentence are for who asked."""

    def __init__(self, code: ErrorCode, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class VoterChanges:
    """The leader's desk for changes of the voters."""

    def __init__(
        self, ports: Ports, peers: Peers, log: MetadataLog, *, listener: str, endpoints: tuple[VoterEndpoint, ...]
    ) -> None:
        self._ports = ports
        self._peers = peers
        self._log = log
        self._listener = listener
        self._endpoints = endpoints
        self._is_busy = False

    async def add(self, voter: Voter, timeout_ms: int) -> int:
        """Write the set with this voter in it; returns the record's offset, which is not committed yet."""
        self._check()
        quorum = self._log.quorum
        if quorum.voters.find(voter.id) is not None:
            raise VoterChangeRefused(ErrorCode.DUPLICATE_VOTER, f"Node {voter.id} is a voter already.")
        if not voter.endpoints:
            raise VoterChangeRefused(ErrorCode.INVALID_REQUEST, "A voter needs an address.")
        self._is_busy = True
        try:
            address = voter.endpoints[0].host, voter.endpoints[0].port
            version = await self._peers.at(*address, "quorum").version_of(VoteRequest, timeout_ms=timeout_ms)
        except PeerUnreachable as error:
            raise VoterChangeRefused(
                ErrorCode.REQUEST_TIMED_OUT, f"The new voter cannot be reached: {error}"
            ) from error
        finally:
            self._is_busy = False
        if version < 1:
            raise VoterChangeRefused(ErrorCode.INVALID_REQUEST, "The new voter knows no voters that change.")
        self._check()
        self._check_caught_up(voter)
        return self._append(VoterSet((*quorum.voters, voter)))

    def remove(self, key: ReplicaKey) -> int:
        self._check()
        voters = self._log.quorum.voters
        gone = voters.find(key.id)
        if gone is None or gone.directory_id != key.directory_id or len(voters) == 1:
            raise VoterChangeRefused(ErrorCode.VOTER_NOT_FOUND, f"Cannot remove the voter {key.id}.")
        return self._append(VoterSet(tuple(voter for voter in voters if voter is not gone)))

    def update(self, voter: Voter) -> int:
        """A voter has other addresses, or knows other levels of kraft.version."""
        self._check()
        voters = self._log.quorum.voters
        known = voters.find(voter.id)
        if known is None or known.directory_id != voter.directory_id:
            raise VoterChangeRefused(ErrorCode.VOTER_NOT_FOUND, f"Node {voter.id} is not a voter with that directory.")
        _check_usable(voter, DYNAMIC, self._listener)
        changed = replace(known, endpoints=voter.endpoints, kraft_version_max=voter.kraft_version_max)
        return self._append(VoterSet(tuple(changed if each is known else each for each in voters)))

    def introduce(self, voter: Voter, epoch: int) -> ErrorCode:
        """A fixed voter says who it is, for the day on which the quorum becomes a dynamic one."""
        _check_usable(voter, STATIC, self._listener)
        answer = self._log.step(VoterIntroduced(voter, epoch))
        assert isinstance(answer, Answer)
        return answer.error

    def why_not_upgraded(self) -> str | None:
        """What keeps this leader from raising kraft.version to 1."""
        if not self._log.quorum.leads:
            return None
        try:
            self._log.quorum.upgraded_voters(self._endpoints)
        except UpgradeRefused as refused:
            return str(refused)
        return None

    def upgrade(self) -> int:
        """Let the log name the voters from now on; returns the offset of the record that does, not committed yet."""
        return self._log.append_upgrade(self._log.quorum.upgraded_voters(self._endpoints))

    def _check(self) -> None:
        """Whether the voters may change now."""
        quorum = self._log.quorum
        role = quorum.role
        if not isinstance(role, Leader):
            raise VoterChangeRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "This node does not lead the quorum.")
        if quorum.kraft_version < DYNAMIC:
            raise VoterChangeRefused(
                ErrorCode.UNSUPPORTED_VERSION, "The voters of this quorum are fixed: kraft.version is 0."
            )
        if quorum.high_watermark <= role.epoch_start:
            raise VoterChangeRefused(ErrorCode.REQUEST_TIMED_OUT, "The leader is new and has committed nothing yet.")
        if self._is_busy or self._log.files.history.latest.offset >= quorum.high_watermark:
            raise VoterChangeRefused(ErrorCode.REQUEST_TIMED_OUT, "The last change of voters is not committed yet.")

    def _check_caught_up(self, voter: Voter) -> None:
        role = self._log.quorum.role
        assert isinstance(role, Leader)
        progress = role.observers.get(ReplicaKey(voter.id, voter.directory_id))
        now_ms = self._ports.clock.monotonic_ms()
        if progress is None or progress.caught_up_ms < max(0, now_ms - OBSERVER_FORGOTTEN_MS):
            raise VoterChangeRefused(
                ErrorCode.REQUEST_TIMED_OUT, f"Node {voter.id} has not caught up with the metadata log."
            )

    def _append(self, voters: VoterSet) -> int:
        warn_of_even_number(voters)
        try:
            return self._log.append_voters(voters)
        except BrokerError as error:
            raise VoterChangeRefused(error.code, str(error)) from error


def warn_of_even_number(voters: VoterSet) -> None:
    if len(voters) and len(voters) % 2 == 0:
        _log.warning(
            "the quorum has an even number of voters: one more would make it safer, and one less no weaker",
            voters=len(voters),
        )


def _check_usable(voter: Voter, kraft_version: int, listener: str) -> None:
    """Whether the others could work with what a voter says of itself."""
    if voter.kraft_version_max < kraft_version:
        raise VoterChangeRefused(
            ErrorCode.INVALID_REQUEST, f"Node {voter.id} does not know kraft.version {kraft_version}."
        )
    if all(endpoint.name.upper() != listener for endpoint in voter.endpoints):
        raise VoterChangeRefused(ErrorCode.INVALID_REQUEST, f"Node {voter.id} does not listen on {listener}.")
