"""The harness with fixed voters that become voters in the log (kraft.version 0 to 1) while everything breaks.

Voters introduce themselves to their leader, once in an epoch; now and then a leader tries to write them into its log.
Once that is committed voters come and go, or (in other runs: both together might leave too few) one of them loses its
disk, and is no voter any more.
"""

from __future__ import annotations

from millstream.protocol.error_codes import ErrorCode
from millstream.protocol.uuid import Uuid
from millstream.quorum.election_state import ElectionState
from millstream.quorum.events import Answer, VoterIntroduced
from millstream.quorum.roles import Follower
from millstream.quorum.upgrade import UpgradeRefused
from millstream.quorum.voters import DYNAMIC, Voter
from tests.quorum.harness import Harness
from tests.quorum.member import ListLog, Member


def directory(node_id: int, disk: int = 1) -> Uuid:
    return Uuid(b"disk" + bytes((node_id, disk)) * 6)


class UpgradingHarness(Harness):
    """As the other, with directories and an upgrade; see the module's docstring."""

    def __init__(self, seed: int, voters: int = 3, observers: int = 1, *, faults: bool = True) -> None:
        self.disks_lost = 0
        self._loses_disk = seed % 2 == 1
        self.introduced: dict[int, int] = {}
        super().__init__(seed, voters, observers, faults=faults)
        for member in self.members.values():
            member.crash()
            member.votes = True
            member.directory_id = directory(member.id)
            member.start()

    @property
    def is_upgraded(self) -> bool:
        """Whether the quorum has committed to voters in its log."""
        return any(record.voters is not None for record in self.committed)

    def _everybody_knows(self) -> bool:
        """Whoever has not got the record yet would take an empty disk for the voter that it knows by its number."""
        upgrade = next((at for at, record in enumerate(self.committed) if record.voters is not None), None)
        return upgrade is not None and all(member.log.flushed > upgrade for member in self.members.values())

    def tick(self) -> None:
        for member in self.members.values():
            if member.up:
                self._introduce(member)
        leader = self.leader
        if leader is not None and leader.node.kraft_version < DYNAMIC and self.random.random() < 0.2:
            self.try_to_upgrade(leader)
        self.dynamic = self.is_upgraded and not self._loses_disk
        may_lose = self._loses_disk and self.faults and not self.disks_lost and self._everybody_knows()
        if may_lose and self.random.random() < 0.05:
            self._lose_disk(self.random.choice(list(self.members.values())))
        super().tick()

    def try_to_upgrade(self, leader: Member) -> bool:
        try:
            voters = leader.node.upgraded_voters(())
        except UpgradeRefused:
            return False
        leader._append_voters(voters)
        return True

    def _introduce(self, member: Member) -> None:
        role = member.node.role
        epoch = member.node.epoch
        if not isinstance(role, Follower) or not role.has_fetched or self.introduced.get(member.id) == epoch:
            return
        if member.node.kraft_version >= DYNAMIC or not member.node.is_voter:
            return

        def answered(answer: Answer, *_: int) -> None:
            if answer.error is ErrorCode.NONE:
                self.introduced[member.id] = epoch

        self.send(member, role.leader_id, VoterIntroduced(Voter(member.id, member.directory_id), epoch), answered)

    def _holds(self, member: Member, offset: int) -> bool:
        """What a voter acknowledged counts also when its disk is gone; those that are left are still enough to tell."""
        return member.directory_id != directory(member.id) or super()._holds(member, offset)

    def _lose_disk(self, member: Member) -> None:
        """Only one in a run: what a majority held has to be on some disk still."""
        self.disks_lost += 1
        member.crash()
        member.log, member.durable = ListLog(), ElectionState()
        member.directory_id = directory(member.id, disk=2)
        member.start()
