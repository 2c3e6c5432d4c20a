"""Who votes: the voter set of a metadata quorum.

A static quorum (kraft.version 0) knows its voters from the configuration, by node id alone. A dynamic one (1) keeps
them in the log as a VotersRecord, by node id *and* directory id, so that a voter which comes back with an empty disk is
not mistaken for the one that voted before (KIP-853).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.protocol.messages.data import voters_record
from millstream.protocol.messages.data.voters_record import VotersRecord
from millstream.protocol.uuid import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from collections.abc import Iterator

STATIC = 0
DYNAMIC = 1


@dataclass(frozen=True, slots=True)
class VoterEndpoint:
    """A controller listener of a voter."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    """One voter. `directory_id` is zero in a static quorum, which does not tell directories apart."""

    id: int
    directory_id: Uuid = ZERO_UUID
    endpoints: tuple[VoterEndpoint, ...] = ()
    kraft_version_max: int = DYNAMIC


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters in the order of their record; ids are unique."""

    voters: tuple[Voter, ...]

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.voters)

    def __len__(self) -> int:
        return len(self.voters)

    def ids(self) -> tuple[int, ...]:
        return tuple(voter.id for voter in self.voters)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def find(self, node_id: int) -> Voter | None:
        return next((voter for voter in self.voters if voter.id == node_id), None)

    def includes(self, node_id: int, directory_id: Uuid) -> bool:
        """Whether this very replica votes. A voter without a directory id is known by its node id alone."""
        voter = self.find(node_id)
        return voter is not None and voter.directory_id in (ZERO_UUID, directory_id)

    @classmethod
    def from_record(cls, record: VotersRecord) -> VoterSet:
        return cls(
            tuple(
                Voter(
                    id=voter.voter_id,
                    directory_id=voter.voter_directory_id,
                    endpoints=tuple(VoterEndpoint(each.name, each.host, each.port) for each in voter.endpoints),
                    kraft_version_max=voter.k_raft_version_feature.max_supported_version,
                )
                for voter in record.voters
            )
        )

    def to_record(self) -> VotersRecord:
        return VotersRecord(
            version=0,
            voters=[
                voters_record.Voter(
                    voter_id=voter.id,
                    voter_directory_id=voter.directory_id,
                    endpoints=[
                        voters_record.Endpoint(name=each.name, host=each.host, port=each.port)
                        for each in voter.endpoints
                    ],
                    k_raft_version_feature=voters_record.KRaftVersionFeature(
                        min_supported_version=STATIC, max_supported_version=voter.kraft_version_max
                    ),
                )
                for voter in self.voters
            ],
        )
