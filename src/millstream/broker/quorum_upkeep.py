"""A controller looks after its own place among the voters (KIP-853).

A voter of a static quorum introduces itself to every new leader (UpdateRaftVoter), which may have to write all voters
into the log one day. In a dynamic quorum a voter that has moved tells the leader its new address in the same way. With
`controller.quorum.auto.join.enable` a controller that is not a voter asks to become one (AddRaftVoter), after asking to
remove the one that had its number and another directory: that disk is gone. All of it again and again, until the leader
or the log says that it is done.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.broker.peers import PeerUnreachable
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages import add_raft_voter, update_raft_voter
from millstream.protocol.messages.add_raft_voter import AddRaftVoterRequest
from millstream.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from millstream.protocol.messages.update_raft_voter import KRaftVersionFeature, UpdateRaftVoterRequest
from millstream.quorum.roles import Follower
from millstream.quorum.voters import DYNAMIC, STATIC
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.peers import Peers
    from millstream.broker.quorum_config import QuorumConfig
    from millstream.quorum.node import QuorumNode
    from millstream.quorum.voters import VoterEndpoint

NO_EPOCH = -1
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_CHANGE_TIMEOUT_MS = 10_000
_log = Logger("millstream.quorum")


class VoterUpkeep:
    """See the module's docstring."""

    def __init__(
        self,
        peers: Peers,
        quorum: QuorumNode,
        config: QuorumConfig,
        *,
        cluster_id: str,
        endpoints: tuple[VoterEndpoint, ...],
        address_of: Callable[[int], tuple[str, int] | None],
    ) -> None:
        self._peers = peers
        self._quorum = quorum
        self._config = config
        self._cluster_id = cluster_id
        self._endpoints = endpoints
        self._address_of = address_of
        self._introduced_in_epoch = NO_EPOCH

    async def run(self) -> None:
        """For as long as the node lives."""
        while True:
            await asyncio.sleep(self._config.timeouts.fetch_ms / 1000)
            request = self.wanted()
            address = self._address_of(self._quorum.leader_id)
            if request is None or address is None:
                continue
            epoch = self._quorum.epoch
            try:
                response = await self._peers.at(*address, "voters").ask(request, timeout_ms=_CHANGE_TIMEOUT_MS)
            except PeerUnreachable as error:
                _log.warning("the quorum's leader did not answer a change of voters", why=str(error))
                continue
            self._take(request, response.error_code, epoch)

    def _take(self, request: object, code: int, epoch: int) -> None:
        """A leader of an older release has no use for an introduction, and says that it does not support it."""
        is_done = code == ErrorCode.NONE
        if isinstance(request, UpdateRaftVoterRequest) and (is_done or code == ErrorCode.UNSUPPORTED_VERSION):
            self._introduced_in_epoch = epoch
        elif not is_done:
            _log.warning(
                "the quorum's leader refused a change of voters",
                request=type(request).__name__,
                code=ErrorCode(code).name,
            )

    def wanted(self) -> UpdateRaftVoterRequest | AddRaftVoterRequest | RemoveRaftVoterRequest | None:
        """What to ask the leader for, if anything is not as it should be."""
        quorum = self._quorum
        role = quorum.role
        if not isinstance(role, Follower) or not role.has_fetched:
            return None
        if quorum.kraft_version < DYNAMIC:
            is_news = quorum.is_voter and self._endpoints and self._introduced_in_epoch != quorum.epoch
            return self._update() if is_news else None
        known = quorum.voters.find(quorum.node_id)
        if quorum.is_voter:
            assert known is not None
            return self._update() if known.endpoints != self._endpoints and self._is_reachable() else None
        if not self._config.auto_join or not self._endpoints:
            return None
        if known is not None:
            return RemoveRaftVoterRequest(
                cluster_id=self._cluster_id, voter_id=known.id, voter_directory_id=known.directory_id
            )
        return AddRaftVoterRequest(
            cluster_id=self._cluster_id,
            timeout_ms=_CHANGE_TIMEOUT_MS,
            voter_id=quorum.node_id,
            voter_directory_id=quorum.directory_id,
            listeners=[
                add_raft_voter.Listener(name=each.name, host=each.host, port=each.port) for each in self._endpoints
            ],
            ack_when_committed=False,
        )

    def _is_reachable(self) -> bool:
        """Whether others may know our addresses: one that nobody told us is `localhost`, which others are as well."""
        others = [each.host for voter in self._quorum.voters for each in voter.endpoints]
        return all(each.host != "localhost" for each in self._endpoints) or all(host in _LOOPBACK for host in others)

    def _update(self) -> UpdateRaftVoterRequest:
        quorum = self._quorum
        return UpdateRaftVoterRequest(
            cluster_id=self._cluster_id,
            current_leader_epoch=quorum.epoch,
            voter_id=quorum.node_id,
            voter_directory_id=quorum.directory_id,
            listeners=[
                update_raft_voter.Listener(name=each.name, host=each.host, port=each.port) for each in self._endpoints
            ],
            k_raft_version_feature=KRaftVersionFeature(min_supported_version=STATIC, max_supported_version=DYNAMIC),
        )
