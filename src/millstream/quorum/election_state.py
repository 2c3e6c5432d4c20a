"""What a voter must not forget over a restart: the epoch, the leader it knows, and whom it voted for in that epoch.

Kafka keeps it as one JSON object in the file `quorum-state`: version 0 beside a static quorum (with fields that say
nothing any more), version 1 beside a dynamic one. Writing it before answering a vote is what makes two votes of one
voter in one epoch impossible.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from millstream.protocol.uuid import ZERO_UUID, Uuid

NOBODY = -1


class BrokenElectionState(Exception):
    """The file `quorum-state` is not what a node of this cluster writes."""


@dataclass(frozen=True, slots=True)
class ElectionState:
    """The persistent part of a voter's state. A fresh voter is at epoch 0 and knows nobody."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: Uuid = ZERO_UUID


def encode_election_state(state: ElectionState, *, kraft_version: int, voter_ids: tuple[int, ...]) -> bytes:
    """The content of the file, in Kafka's order of fields."""
    if kraft_version == 0:
        content: dict[str, Any] = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter_id} for voter_id in voter_ids],
            "data_version": 0,
        }
    else:
        content = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": str(state.voted_directory_id),
            "data_version": 1,
        }
    return json.dumps(content, separators=(",", ":")).encode()


def decode_election_state(content: bytes) -> ElectionState:
    """Both versions; whichever a directory holds, the state is the same."""
    try:
        fields = json.loads(content)
        version = fields["data_version"]
        if version not in (0, 1):
            raise BrokenElectionState(f"quorum-state has the unknown version {version}")
        return ElectionState(
            epoch=int(fields["leaderEpoch"]),
            leader_id=int(fields["leaderId"]),
            voted_id=int(fields["votedId"]),
            voted_directory_id=Uuid.parse(fields["votedDirectoryId"]) if version == 1 else ZERO_UUID,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenElectionState(f"quorum-state cannot be read: {error}") from error
