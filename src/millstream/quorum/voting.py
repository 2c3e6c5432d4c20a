"""Whether a vote is given: the rules of KRaft (KIP-595, with the pre-votes of KIP-996).

A vote is given once in an epoch, to a candidate whose log is as new as ours, and never in an epoch whose leader is
known. A pre-vote is only an opinion, changes nothing and is not remembered; a replica that hears from a living leader
has none, so that a node which comes back from behind a broken cable cannot unseat a leader that serves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.uuid import ZERO_UUID
from millstream.quorum.election_state import NOBODY
from millstream.quorum.roles import Follower, Leader, Prospective, Unattached

if TYPE_CHECKING:
    from millstream.quorum.election_state import ElectionState
    from millstream.quorum.roles import ReplicaKey, Role


def would_vote(role: Role, *, log_is_new_enough: bool, leads_for_certain: bool) -> bool:
    """The answer to a pre-vote. `leads_for_certain`: we lead, and a majority has shown that it follows."""
    if isinstance(role, Follower) and role.has_fetched:
        return False
    if isinstance(role, Leader) and leads_for_certain:
        return False
    return log_is_new_enough


def may_vote(role: Role, state: ElectionState, candidate: ReplicaKey, *, log_is_new_enough: bool) -> bool:
    """The answer to a vote, in our own epoch."""
    if not isinstance(role, Unattached | Prospective):
        return False
    if state.voted_id != NOBODY:
        same_directory = ZERO_UUID in (state.voted_directory_id, candidate.directory_id) or (
            state.voted_directory_id == candidate.directory_id
        )
        return state.voted_id == candidate.id and same_directory
    if state.leader_id != NOBODY:
        return False
    return log_is_new_enough
