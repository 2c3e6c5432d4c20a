"""A consumer group: its members, its epochs and its target assignment.

Everything here is stored, and written by `replay.py` alone, whether a record was decided a moment ago or comes from the
log; the counts and indexes beside it follow from it. What is not stored says so.

A member's partitions are in `partition_epochs` as long as it may read them: those that it has, and those that it was
told to let go of. A partition that is not in there is free.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from millstream.groups.consumer.commits import check_commit, check_fetch
from millstream.groups.consumer.member import ConsumerMember, MemberState
from millstream.groups.consumer.partitions import NO_PARTITIONS
from millstream.groups.consumer.records import group_tombstones
from millstream.groups.consumer.subscriptions import Subscriptions
from millstream.groups.consumer.timers import on_loaded, on_timer
from millstream.groups.group import CONSUMER, OffsetExpiry
from millstream.protocol.errors import NonEmptyGroup, UnknownMember
from millstream.protocol.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from millstream.groups.assignors.spec import Partitions
    from millstream.groups.consumer.partitions import Owned
    from millstream.groups.group import CheckPartition
    from millstream.groups.machine import GroupMachine
    from millstream.metadata.image import Topics
    from millstream.protocol.uuid import Uuid
    from millstream.replicated import Cancel, Decision, Record, Schedule

# The protocol type that ListGroups shows, and that JoinGroup has to name.
PROTOCOL_TYPE = "consumer"


class ConsumerGroup:
    """One group. `decide_*` functions beside this module read it; nothing but `replay.py` writes to it."""

    type_name = CONSUMER

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        # The first epoch is never 0: that is what members say when they join.
        self.epoch = 1
        # A hash over the topics that the group reads: tells when they have changed (KIP-1101).
        self.metadata_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.target: dict[str, Partitions] = {}
        # In its first epoch a group assigns nothing.
        self.target_epoch = 1
        self.target_timestamp_ms = 0
        self.subscriptions = Subscriptions()
        self.partition_epochs: dict[Uuid, dict[int, int]] = {}
        self.classic_count = 0
        # By protocol name: how many classic members can speak it.
        self.classic_protocols: Counter[str] = Counter()
        # A broker before Kafka 4.1 left a record of its own for the topics; it is removed at the next chance.
        self.has_old_metadata = False

        # Not stored: the topics of the metadata when the group last looked at them, and its epoch after that look,
        self._seen: tuple[Topics, int] | None = None
        # and classic members that were told to join again, each with a timer that ends their patience.
        self.awaited_joins: dict[str, None] = {}

    # --- members

    def put(self, member: ConsumerMember) -> None:
        """A member came, or changed."""
        old = self.members.get(member.id)
        self.members[member.id] = member
        if old is not None:
            self._release(old)
            self._count_classic(old, -1)
        self._claim(member)
        self._count_classic(member, 1)
        if old is None or (old.topics, old.pattern, old.assignor) != (member.topics, member.pattern, member.assignor):
            self.subscriptions.replace(old, member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        self._count_classic(member, -1)
        self.subscriptions.replace(member, None)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]

    def _claim(self, member: ConsumerMember) -> None:
        for owned in (member.assigned, member.revoking):
            for topic_id, partitions in owned.items():
                epochs = self.partition_epochs.setdefault(topic_id, {})
                for partition in partitions:
                    epochs[partition] = member.epoch

    def _release(self, member: ConsumerMember) -> None:
        """Partitions that somebody else has claimed since, in another epoch, stay with them."""
        for owned in (member.assigned, member.revoking):
            for topic_id, partitions in owned.items():
                epochs = self.partition_epochs.get(topic_id, {})
                for partition in partitions:
                    if epochs.get(partition) == member.epoch:
                        del epochs[partition]
                if topic_id in self.partition_epochs and not epochs:
                    del self.partition_epochs[topic_id]

    def _count_classic(self, member: ConsumerMember, change: int) -> None:
        if member.classic is None:
            return
        self.classic_count += change
        for protocol in member.classic.supported_protocols:
            self.classic_protocols[protocol.name] += change
            if self.classic_protocols[protocol.name] <= 0:
                del self.classic_protocols[protocol.name]

    def member(self, member_id: str) -> ConsumerMember:
        known = self.members.get(member_id)
        if known is None:
            raise UnknownMember(f"Member {member_id} is not a member of group {self.id}.")
        return known

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        return None if instance_id is None else self.members.get(self.static_members.get(instance_id, ""))

    def target_of(self, member_id: str, instance_id: str | None) -> Partitions:
        """What a member shall have; a static member that came back takes over what its former self had."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, "")
        return self.target.get(member_id, NO_PARTITIONS)

    def is_free(self, topic_id: Uuid, partition: int) -> bool:
        """Whether no member may be reading it."""
        return partition not in self.partition_epochs.get(topic_id, ())

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether something that the member shall have is still held by somebody else."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return any(
            not _owns(member.assigned, topic_id, partition) and not self.is_free(topic_id, partition)
            for topic_id, partitions in self.target.get(member.id, NO_PARTITIONS).items()
            for partition in partitions
        )

    def look_at(self, topics: Topics, epoch: int) -> None:
        """The topics were looked at, and that makes it this epoch, once it is written."""
        self._seen = (topics, epoch)

    def has_seen(self, topics: Topics) -> bool:
        """Whether these are the topics that it looked at last. If the epoch was never written, it has to look again."""
        return self._seen is not None and self._seen[0] is topics and self.epoch >= self._seen[1]

    # --- what any group can tell (groups/group.py)

    def state_name(self, now_ms: int) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def listed(self, now_ms: int) -> ListedGroup:
        return ListedGroup(
            group_id=self.id,
            protocol_type=PROTOCOL_TYPE,
            group_state=self.state_name(now_ms),
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
        return check_commit(self, member_id, instance_id, generation, transactional=transactional, version=version)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        check_fetch(self, member_id, member_epoch)

    def check_offset_delete(self) -> None:
        """Any topic that nobody reads is free to go; see `is_subscribed_to`."""

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def offset_expiry(self) -> OffsetExpiry | None:
        return OffsetExpiry()

    def committed(self, member_id: str) -> tuple[Schedule | Cancel, ...]:
        """Commits say nothing about whether a member is alive: it has heartbeats for that."""
        return ()

    def check_delete(self) -> None:
        if self.members:
            raise NonEmptyGroup

    def tombstones(self) -> tuple[Record, ...]:
        return group_tombstones(self.id, self.members, self.subscriptions.resolved)

    def loaded(self, machine: GroupMachine, now_ms: int) -> tuple[Schedule | Cancel, ...]:
        return on_loaded(machine, self)

    def on_timer(self, machine: GroupMachine, key: tuple[Any, ...], now_ms: int) -> Decision[Any]:
        return on_timer(machine, self, key, now_ms)


def _owns(owned: Owned, topic_id: Uuid, partition: int) -> bool:
    return partition in owned.get(topic_id, ())
