"""A classic group: its members, its state, and its place in the log.

The generations of a classic group are made by its members: all of them join, the broker picks a leader and a protocol,
the leader assigns, all of them sync. So most of a group is soft state, as in Kafka: who waits in the join phase, who
has been promised an id, which state the group is in. What is stored is one GroupMetadataValue for each generation,
written when the leader's assignment arrives, and when the last member has gone.

A value in the log therefore means two things (`replay.py`). One that this very group has just decided to write
(`record`) finishes what the decision began: the assignment becomes the members' own and the group is Stable. Any other
comes from a replay, and the group is made from it: Stable with its members if there are any, Empty otherwise.

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable
      ^        (JoinGroup waits)     (SyncGroup waits)       |
      |               ^---------------------'----------------|  a member joins, leaves, goes silent
      '---- the last member has gone ------------------------'

Kafka has a fifth state, Dead, for a group that was removed while somebody still holds it. Here a removed group is one
that nobody holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.groups.classic.member import ClassicMember, Client
from millstream.groups.classic.membership import Membership
from millstream.groups.classic.state import GroupState
from millstream.groups.classic.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from millstream.groups.classic.timers import on_loaded, on_timer
from millstream.groups.group import CLASSIC, OffsetExpiry
from millstream.protocol.errors import (
    IllegalGeneration,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMember,
)
from millstream.protocol.messages.groups.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from millstream.protocol.messages.list_groups import ListedGroup
from millstream.replicated import Record, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.groups.group import CheckPartition
    from millstream.groups.machine import GroupMachine
    from millstream.replicated import Cancel, Decision

# What Apache Kafka 4.3 writes, whatever the metadata version.
GROUP_METADATA_VERSION = 3


class ClassicGroup(Membership):
    """Members and state of one group. Its rules of change are in the modules beside this one."""

    type_name = CLASSIC

    def __init__(self, group_id: str, now_ms: int) -> None:
        super().__init__(group_id)
        self.state = GroupState.EMPTY
        # When it entered its state; None for groups stored by brokers so old that they did not write it.
        self.state_since_ms: int | None = now_ms
        self.generation = 0
        self.protocol: str | None = None
        # Members of this generation that have not asked for their assignment yet.
        self.pending_sync: dict[str, None] = {}
        # While the very first members gather: (this wait, what of the rebalance timeout is left after it).
        self.initial_wait: tuple[int, int] | None = None
        self.newcomer_in_wait = False
        # None: not known, because nobody voted yet or because the members' metadata cannot be read.
        self.topics: frozenset[str] | None = None
        self._being_written: GroupMetadataValue | None = None

    # --- the log

    def record(self, assignments: Mapping[str, bytes]) -> Record:
        """What is stored of the group, with these assignments. Once it is written, they hold."""
        protocol = self.protocol
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=protocol,
            leader=self.leader,
            current_state_timestamp=-1 if self.state_since_ms is None else self.state_since_ms,
            members=[
                MemberMetadata(
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    client_id=member.client.id,
                    client_host=member.client.host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.protocols[protocol or ""],
                    assignment=assignments.get(member.id, b""),
                )
                for member in self.members.values()
            ],
        )
        return self._write(value)

    def founding_record(self) -> Record:
        """What is stored of a group that somebody has just asked to join: that there is one."""
        return self._write(
            GroupMetadataValue(
                protocol_type="",
                generation=0,
                protocol=None,
                leader=None,
                current_state_timestamp=-1 if self.state_since_ms is None else self.state_since_ms,
                members=[],
            )
        )

    def _write(self, value: GroupMetadataValue) -> Record:
        self._being_written = value
        return Record(GroupMetadataKey(group=self.id), value, GROUP_METADATA_VERSION)

    def has_decided(self, value: GroupMetadataValue) -> bool:
        """Whether this is what the group has just decided to write, and not something from the log."""
        return value is self._being_written

    def take_assignments(self, value: GroupMetadataValue) -> None:
        """What was decided is in the log, so it holds; those who waited for it are being answered."""
        self._being_written = None
        for stored in value.members:
            member = self.members[stored.member_id]
            member.assignment = bytes(stored.assignment)
            member.join = None
            member.sync = None
        if value.members:
            self.state = GroupState.STABLE

    @classmethod
    def restored(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        """The group as it is in the log."""
        group = cls(group_id, value.current_state_timestamp)
        if value.current_state_timestamp == -1:
            group.state_since_ms = None
        if value.members:
            group.state = GroupState.STABLE
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        for stored in value.members:
            group.add(_restored_member(stored, value.protocol or ""))
        if value.leader in group.members:
            group.leader = value.leader
        group._read_topics()
        return group

    def _read_topics(self) -> None:
        self.topics = None
        if self.protocol_type == CONSUMER_PROTOCOL_TYPE and (self.protocol is not None or not self.members):
            protocol = self.protocol or ""
            self.topics = subscribed_topics(member.protocols[protocol] for member in self.members.values())

    # --- state

    def enter(self, state: GroupState, now_ms: int) -> None:
        self.state = state
        self.state_since_ms = now_ms

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Whether somebody with these protocols can be a member: one of them has to be everybody's."""
        if self.is_empty:
            return bool(protocol_type) and any(True for _ in protocols)
        return self.protocol_type == protocol_type and self.shares_one_of(protocols)

    def remove(self, member_id: str) -> None:
        super().remove(member_id)
        self.pending_sync.pop(member_id, None)

    def next_generation(self, now_ms: int) -> None:
        """Everybody who will be in it has joined."""
        # Kafka's int wraps to the smallest one; a generation below 0 would mean "no generation".
        self.generation = (self.generation + 1) & 0x7FFFFFFF
        self.initial_wait = None
        self.pending_sync.clear()
        if self.members:
            self.protocol = self.select_protocol()
            self.enter(GroupState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol = None
            self.enter(GroupState.EMPTY, now_ms)
        self._read_topics()

    def become_stable(self, protocol_type: str, generation: int) -> None:
        """Members came over from a group of another kind, and are in this generation."""
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = self.select_protocol()
        self.state = GroupState.STABLE
        self._read_topics()

    # --- timers

    @property
    def rebalance_timer(self) -> tuple[str, str, str]:
        return (CLASSIC, self.id, "rebalance")

    @property
    def join_timer(self) -> tuple[str, str, str]:
        return (CLASSIC, self.id, "join")

    @property
    def sync_timer(self) -> tuple[str, str, str]:
        return (CLASSIC, self.id, "sync")

    def session_timer(self, member_id: str) -> tuple[str, str, str, str]:
        return (CLASSIC, self.id, "session", member_id)

    def keep_session(self, member: ClassicMember) -> Schedule:
        """The member was heard of."""
        return Schedule(self.session_timer(member.id), member.session_timeout_ms)

    # --- what any group can tell (groups/group.py)

    def state_name(self, now_ms: int) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    def listed(self, now_ms: int) -> ListedGroup:
        return ListedGroup(
            group_id=self.id,
            protocol_type=self.protocol_type or "",
            group_state=self.state.value,
            group_type=self.type_name,
        )

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        transactional: bool,
        version: int,
    ) -> CheckPartition | None:
        if generation < 0 and self.is_empty:
            return None  # an admin, or a consumer that assigns to itself
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise IllegalGeneration
        elif not transactional:
            raise UnknownMember(f"group '{self.id}' has members, and offsets are committed by them only")
        if not transactional and self.state is GroupState.COMPLETING_REBALANCE:
            # The member is current, but does not know yet what is its own.
            raise RebalanceInProgress
        return None

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may."""

    def check_offset_delete(self) -> None:
        if not self.is_empty and self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise NonEmptyGroup

    def is_subscribed_to(self, topic: str) -> bool:
        if self.topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.topics

    def offset_expiry(self) -> OffsetExpiry | None:
        if self.protocol_type is None:
            return OffsetExpiry()
        if self.is_empty:
            return OffsetExpiry(since_ms=self.state_since_ms)
        if self.topics is not None and self.state is GroupState.STABLE:
            return OffsetExpiry()
        return None

    def committed(self, member_id: str) -> tuple[Schedule | Cancel, ...]:
        member = self.members.get(member_id)
        return () if member is None else (self.keep_session(member),)

    def check_delete(self) -> None:
        if not self.is_empty:
            raise NonEmptyGroup

    def tombstones(self) -> tuple[Record, ...]:
        return (Record(GroupMetadataKey(group=self.id), None),)

    def loaded(self, machine: GroupMachine, now_ms: int) -> tuple[Schedule | Cancel, ...]:
        return on_loaded(machine, self, now_ms)

    def on_timer(self, machine: GroupMachine, key: tuple[Any, ...], now_ms: int) -> Decision[Any]:
        return on_timer(machine, self, key, now_ms)


def _restored_member(stored: MemberMetadata, protocol: str) -> ClassicMember:
    return ClassicMember(
        id=stored.member_id,
        instance_id=stored.group_instance_id,
        client=Client(stored.client_id, stored.client_host),
        rebalance_timeout_ms=stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout,
        session_timeout_ms=stored.session_timeout,
        protocols={protocol: bytes(stored.subscription)},
        assignment=bytes(stored.assignment),
    )
