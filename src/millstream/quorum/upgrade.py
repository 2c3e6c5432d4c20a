"""From fixed voters to voters in the log: kraft.version 0 to 1, as the leader of the quorum goes about it (KIP-853).

A voter of a dynamic quorum is known by the id of its directory, which no setting says. So every voter of a static one
introduces itself to each new leader (UpdateRaftVoter): its directory, its addresses, and the levels of kraft.version
that it knows. The leader keeps that in memory. When all have done so it can write one batch with the new level and
the voters, which count from the moment they are in its log, like every set of voters. The ids stay the same, so any
majority of those before overlaps with any of those after; and who cuts the batch off again is back at fixed voters.

An empty disk is told from the one before only by those who have the batch: until every voter has it, replacing a disk
is as dangerous as ever with fixed voters (tests/quorum/upgrading.py shows how it goes wrong).

There is no way back to level 0: a log that names voters cannot be made to forget them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.error_codes import ErrorCode
from millstream.protocol.uuid import ZERO_UUID
from millstream.quorum.voters import DYNAMIC, Voter, VoterSet

if TYPE_CHECKING:
    from millstream.quorum.roles import Leader, ReplicaKey


class UpgradeRefused(Exception):
    """kraft.version stays as it is; the sentence is for who asked."""


def introduce(role: Leader, voters: VoterSet, voter: Voter) -> ErrorCode:
    """A fixed voter says who it is; the answer's code."""
    if voters.find(voter.id) is None:
        return ErrorCode.VOTER_NOT_FOUND
    role.introduced[voter.id] = voter
    return ErrorCode.NONE


def note_directory(role: Leader, replica: ReplicaKey) -> None:
    """A replica fetches. From another directory than it told, it has another disk, and has to introduce itself anew."""
    known = role.introduced.get(replica.id)
    if known is not None and replica.directory_id not in (ZERO_UUID, known.directory_id):
        del role.introduced[replica.id]


def upgraded_voters(role: Leader, voters: VoterSet, own: Voter) -> VoterSet:
    """The voters as the log shall name them, in the order of before."""
    known = {**role.introduced, own.id: own}
    unknown = [voter.id for voter in voters if not _can_be_upgraded(known.get(voter.id))]
    if unknown:
        raise UpgradeRefused(
            f"not all of the voters support it: nothing that says so was heard from {', '.join(map(str, unknown))}."
        )
    return VoterSet(tuple(known[voter.id] for voter in voters))


def _can_be_upgraded(voter: Voter | None) -> bool:
    return voter is not None and voter.directory_id != ZERO_UUID and voter.kraft_version_max >= DYNAMIC
