"""The quorum's effects that concern other nodes, and the clock: votes asked for, leaders announced and followed.

One task follows the leader (quorum_following.py); everything else is a question with an answer, in a task of its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from millstream.broker.peers import PeerUnreachable
from millstream.broker.quorum_following import BACKOFF_MS_MAX, Following
from millstream.broker.quorum_messages import (
    Seen,
    begin_request,
    end_request,
    seen_in,
    vote_request,
)
from millstream.broker.quorum_upkeep import VoterUpkeep
from millstream.broker.quorum_voters import warn_of_even_number
from millstream.protocol.errors import ErrorCode, StorageError
from millstream.quorum.election_state import NOBODY
from millstream.quorum.events import (
    Announce,
    Discover,
    Effect,
    EpochSeen,
    Follow,
    LoadSnapshot,
    RequestVotes,
    Retire,
    VoteAnswered,
    Wake,
    Woken,
)
from millstream.quorum.roles import Candidate, Prospective, ReplicaKey
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from millstream.broker.metadata_log import MetadataLog
    from millstream.broker.peers import Peers
    from millstream.broker.quorum_config import QuorumConfig
    from millstream.quorum.voters import VoterEndpoint
    from millstream.runtime.ports import Ports

    Address = tuple[str, int]

_ASKING = "quorum"
_FAREWELL_S = 0.5
_log = Logger("millstream.quorum")


class QuorumDriver:
    """See the module's docstring. `on_change` hears of appends, commits and changes of leader."""

    def __init__(
        self,
        ports: Ports,
        peers: Peers,
        log: MetadataLog,
        config: QuorumConfig,
        *,
        cluster_id: str,
        endpoints: tuple[VoterEndpoint, ...],
        on_fetched: Callable[[int, int, int], None],
    ) -> None:
        """`on_fetched` hears of each fetch that a leader answered: its epoch, its high watermark, when it was sent."""
        self._ports = ports
        self._peers = peers
        self._log = log
        self._quorum = log.quorum
        self._config = config
        self.cluster_id = cluster_id
        self.endpoints = endpoints
        self.own = ReplicaKey(log.quorum.node_id, log.quorum.directory_id)
        self._told: dict[int, Address] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._following = Following(ports, peers, log, config, self, on_fetched)
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._farewells: list[asyncio.Task[None]] = []
        self._listeners: dict[Callable[[], None], None] = {}
        self._noted_leader = (-1, NOBODY)
        self.is_closed = False

    def start(self) -> None:
        """Follow the quorum from now on."""
        warn_of_even_number(self._quorum.voters)
        self._spawn(self._following.run())
        if self._config.is_controller:
            upkeep = VoterUpkeep(
                self._peers,
                self._quorum,
                self._config,
                cluster_id=self.cluster_id,
                endpoints=self.endpoints,
                address_of=self.address_of,
            )
            self._spawn(upkeep.run())

    # --- who is where

    def address_of(self, node_id: int) -> Address | None:
        """Where a controller is dialled: as the voters' record or the settings say, else as a peer has told."""
        voter = self._quorum.voters.find(node_id)
        if voter is not None and voter.endpoints:
            named = [each for each in voter.endpoints if each.name == self._config.listener]
            endpoint = (named or list(voter.endpoints))[0]
            return endpoint.host, endpoint.port
        return self._told.get(node_id)

    def learn(self, addresses: dict[int, Address]) -> None:
        for node_id, address in addresses.items():
            if node_id >= 0 and address[1] > 0:
                self._told[node_id] = address

    def targets(self) -> list[Address]:
        """Everybody who may know the leader."""
        voters = [self.address_of(voter.id) for voter in self._quorum.voters if voter.id != self.own.id]
        known = [address for address in voters if address is not None]
        own = [(each.host, each.port) for each in self.endpoints]
        return [each for each in dict.fromkeys((*known, *self._config.bootstrap_servers)) if each not in own]

    # --- effects

    def carry_out(self, effect: Effect) -> None:
        if self.is_closed:
            return
        match effect:
            case Wake(at_ms):
                self._set_timer(at_ms)
            case Follow(epoch, leader_id):
                self._note_leader(epoch, leader_id)
                self._following.turn()
            case Discover():
                self._following.turn()
            case LoadSnapshot(snapshot):
                self._following.take_snapshot(snapshot)
            case RequestVotes() | Announce() | Retire():
                self._tell_voters(effect)
            case _:
                raise AssertionError(f"{effect} is not for the network")

    def _tell_voters(self, effect: RequestVotes | Announce | Retire) -> None:
        for voter in effect.voters:
            match effect:
                case RequestVotes():
                    self._spawn(self._ask_vote(effect, voter))
                case Announce():
                    self._note_leader(effect.epoch, self.own.id)
                    self._spawn(self._announce(effect, voter))
                case Retire():
                    self._farewells.append(self._spawn(self._tell_retired(effect, voter)))
        if isinstance(effect, Retire):
            self._farewells = [task for task in self._farewells if not task.done()]
            self._following.turn()

    @property
    def last_leader_id(self) -> int:
        """Who led last as far as is known; to a node that is just elected, the one before it."""
        return self._noted_leader[1]

    def _note_leader(self, epoch: int, leader_id: int) -> None:
        if (epoch, leader_id) != self._noted_leader:
            self._noted_leader = (epoch, leader_id)
            _log.info("the metadata quorum has a leader", leader=leader_id, epoch=epoch)

    def log_changed(self) -> None:
        for listener in list(self._listeners):
            listener()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Hear when records were appended or committed, and when this node no longer leads."""
        self._listeners[listener] = None

    def unsubscribe(self, listener: Callable[[], None]) -> None:
        self._listeners.pop(listener, None)

    def _set_timer(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay_ms = max(0, at_ms - self._ports.clock.monotonic_ms())
        self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.step(Woken())

    def step(self, event: Any) -> None:
        """Feed the quorum. A failure has been told to everybody, and the node stops."""
        if not self.is_closed and not self._log.has_failed:
            try:
                self._log.step(event)
            except StorageError as error:
                _log.warning("the quorum could not go on", error=str(error))
            except Exception as error:  # noqa: BLE001  # whatever it is, the log has failed with it
                _log.error("the quorum failed", error=str(error), exc_info=error)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task

    def note(self, seen: Seen) -> None:
        self.learn(seen.addresses)
        if seen.leader_epoch >= 0:
            self.step(EpochSeen(seen.leader_epoch, seen.leader_id))

    # --- questions

    async def _ask_vote(self, effect: RequestVotes, voter: ReplicaKey) -> None:
        request = vote_request(effect, voter, self.own, self.cluster_id)
        backoff_ms = self._config.retry_backoff_ms
        while self._still_wants(effect):
            response = await self._ask(voter.id, request)
            if response is not None:
                self._take_vote(effect, voter.id, response)
                return
            await self._pause(backoff_ms)
            backoff_ms = min(2 * backoff_ms, BACKOFF_MS_MAX)

    def _still_wants(self, effect: RequestVotes) -> bool:
        role = Prospective if effect.pre_vote else Candidate
        return not self.is_closed and isinstance(self._quorum.role, role) and self._quorum.epoch == effect.epoch

    def _take_vote(self, effect: RequestVotes, voter_id: int, response: Any) -> None:
        seen = seen_in(response)
        granted = seen.error_code == ErrorCode.NONE and response.topics[0].partitions[0].vote_granted
        self.note(seen)
        self.step(VoteAnswered(voter_id, effect.epoch, granted, effect.pre_vote))

    async def _announce(self, effect: Announce, voter: ReplicaKey) -> None:
        request = begin_request(effect, voter, self.own.id, self.cluster_id, self.endpoints)
        response = await self._ask(voter.id, request)
        if response is not None:
            self.note(seen_in(response))

    async def _tell_retired(self, effect: Retire, voter: ReplicaKey) -> None:
        response = await self._ask(voter.id, end_request(effect, self.own.id, self.cluster_id, self.endpoints))
        if response is not None:
            self.note(seen_in(response))

    async def _ask(self, node_id: int, request: object) -> Any | None:
        """The answer of another controller; None if it cannot be had."""
        address = self.address_of(node_id)
        if address is None:
            return None
        try:
            return await self._peers.at(*address, _ASKING).ask(request, timeout_ms=self._config.request_timeout_ms)
        except PeerUnreachable:
            return None

    async def _pause(self, pause_ms: int) -> None:
        await asyncio.sleep((pause_ms + self._ports.random.below(pause_ms + 1)) / 1000)

    async def close(self) -> None:
        """Ask nobody any more. The others have a moment to hear that we no longer lead."""
        farewells = [task for task in self._farewells if not task.done()]
        if farewells:
            await asyncio.wait(farewells, timeout=_FAREWELL_S)
        self.is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.log_changed()
