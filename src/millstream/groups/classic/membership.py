"""Who belongs to a classic group: members by id, static ones by instance id, who leads, what they can agree on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.protocol.errors import FencedInstance, UnknownMember

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.groups.classic.member import ClassicMember, Protocols


class Membership:
    """The members of one group."""

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.protocol_type: str | None = None
        self.leader: str | None = None
        # In the order of joining: the next leader is the one who came first.
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        # Ids that were given out (MEMBER_ID_REQUIRED) and have not joined yet.
        self.pending_ids: dict[str, None] = {}
        self._votes: Counter[str] = Counter()

    def add(self, member: ClassicMember) -> None:
        if not self.members:
            self.leader = member.id
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        self._votes.update(member.protocols.keys())
        self.pending_ids.pop(member.id, None)

    def update(self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, session_ms: int) -> None:
        """The member joined again, and says this of itself now."""
        self._withdraw_votes(member)
        self._votes.update(protocols.keys())
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_ms

    def remove(self, member_id: str) -> None:
        """Forget a member, or the id that was promised to one."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._withdraw_votes(member)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_ids.pop(member_id, None)

    def rename(self, member: ClassicMember, new_id: str) -> None:
        """A static member came back and got a new id; all else of it stays."""
        old_id = member.id
        member.id = new_id
        self.members = {new_id if id_ == old_id else id_: each for id_, each in self.members.items()}
        if self.leader == old_id:
            self.leader = new_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = new_id

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member that a request claims to come from."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise UnknownMember(f"group '{self.id}' has no member with the instance id '{instance_id}'")
            if known != member_id:
                raise FencedInstance(f"member '{known}' has the instance id '{instance_id}' in group '{self.id}' now")
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMember(f"group '{self.id}' has no member '{member_id}'")
        return member

    @property
    def all_have_joined(self) -> bool:
        return not self.pending_ids and all(member.join is not None for member in self.members.values())

    @property
    def awaiting_join_count(self) -> int:
        return sum(member.join is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The slowest member decides."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def assignments(self) -> dict[str, bytes]:
        return {member.id: member.assignment for member in self.members.values()}

    def elect_leader_who_joined(self) -> bool:
        """Keep the leader if it has joined, else take the first who has; False if nobody has."""
        leader = self.members.get(self.leader or "")
        if leader is None or leader.join is None:
            leader = next((member for member in self.members.values() if member.join is not None), None)
        if leader is None:
            return False
        self.leader = leader.id
        return True

    # --- protocols

    def shares_one_of(self, protocols: Iterable[str]) -> bool:
        """Whether one of these is known to all members."""
        return any(self._votes[name] == len(self.members) for name in protocols)

    def select_protocol(self) -> str:
        """Each member votes for the protocol it likes best of those that all have; the first of the winners wins."""
        candidates = {name for name, count in self._votes.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def _withdraw_votes(self, member: ClassicMember) -> None:
        for name in member.protocols:
            self._votes[name] -= 1
            # Nobody knows what names clients come up with: those out of use are not kept.
            if self._votes[name] == 0:
                del self._votes[name]
