"""What a leader counts: how far each replica is, what a majority holds, and whether a majority still listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.quorum.roles import NEVER_MS, Progress, ReplicaKey

if TYPE_CHECKING:
    from millstream.quorum.positions import LogView
    from millstream.quorum.roles import Leader
    from millstream.quorum.voters import VoterSet

# Observers that have stopped fetching are forgotten, or a cluster that replaces its brokers would remember all of them.
OBSERVER_FORGOTTEN_MS = 5 * 60 * 1000


def note_fetch(role: Leader, replica: ReplicaKey, voters: VoterSet, log: LogView, offset: int, now_ms: int) -> None:
    """A replica holds everything before `offset`."""
    if voters.includes(replica.id, replica.directory_id):
        progress = role.voters.setdefault(replica.id, Progress())
        role.observers.pop(replica, None)
    else:
        progress = role.observers.setdefault(replica, Progress())
        _forget_silent(role, now_ms)
    # A voter that lost its disk comes back with less: what it says now is what counts.
    progress.end_offset = offset
    if offset >= log.end.offset:
        progress.caught_up_ms = now_ms
    elif 0 <= progress.leader_end_at_fetch <= offset:
        progress.caught_up_ms = progress.fetched_ms
    progress.leader_end_at_fetch = log.end.offset
    progress.fetched_ms = progress.heard_ms = now_ms


def note_piece(role: Leader, replica: ReplicaKey, voters: VoterSet, now_ms: int) -> None:
    """A replica takes a snapshot, which may last longer than a leader goes without hearing from a voter."""
    if voters.includes(replica.id, replica.directory_id):
        role.voters.setdefault(replica.id, Progress()).heard_ms = now_ms


def _forget_silent(role: Leader, now_ms: int) -> None:
    silent = [key for key, each in role.observers.items() if 0 <= each.fetched_ms < now_ms - OBSERVER_FORGOTTEN_MS]
    for key in silent:
        del role.observers[key]


def follow_voters(role: Leader, voters: VoterSet, now_ms: int) -> None:
    """The voters are others now. A new one was an observer before, and has its time to be heard from."""
    for voter in voters:
        if voter.id not in role.voters:
            known = role.observers.pop(ReplicaKey(voter.id, voter.directory_id), None)
            role.voters[voter.id] = known or Progress(fetched_ms=now_ms, heard_ms=now_ms)
    for voter_id in [voter_id for voter_id in role.voters if voters.find(voter_id) is None]:
        del role.voters[voter_id]


def held_by_majority(role: Leader, voters: VoterSet) -> int:
    """The offset before which everything is on the disks of a majority."""
    ends = sorted((_end_of(role, voter.id) for voter in voters), reverse=True)
    return ends[voters.majority - 1]


def _end_of(role: Leader, voter_id: int) -> int:
    progress = role.voters.get(voter_id)
    return 0 if progress is None else progress.end_offset


def heard_majority_at_ms(role: Leader, voters: VoterSet, node_id: int, now_ms: int) -> int:
    """When a majority (with ourselves) was last known to follow."""
    heard = []
    for voter in voters:
        progress = role.voters.get(voter.id)
        if voter.id == node_id:
            heard.append(now_ms)
        elif progress is None or progress.heard_ms == NEVER_MS:
            heard.append(role.since_ms)
        else:
            heard.append(progress.heard_ms)
    heard.sort(reverse=True)
    return heard[voters.majority - 1]


def silent_voters(role: Leader, voters: VoterSet, node_id: int, since_ms: int) -> tuple[int, ...]:
    """Voters that were not heard from since then: they may not know who leads."""
    found = []
    for voter in voters:
        progress = role.voters.get(voter.id)
        if voter.id != node_id and (progress is None or progress.heard_ms <= since_ms):
            found.append(voter.id)
    return tuple(found)


def successors(role: Leader, voters: VoterSet, node_id: int) -> tuple[int, ...]:
    """The other voters, those with the longest logs first."""
    others = [voter.id for voter in voters if voter.id != node_id]
    return tuple(sorted(others, key=lambda voter_id: (-_end_of(role, voter_id), voter_id)))
