"""A consumer group becomes a classic group when its last member of the new protocol goes, live: a fleet is rolled back.

The classic members keep what they have, and rebalance at once, because what the others had is free now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.groups.classic.group import ClassicGroup
from millstream.groups.classic.member import ClassicMember, Client
from millstream.groups.consumer.embedded_protocol import read_version, write_assignment
from millstream.groups.consumer.partitions import NO_PARTITIONS
from millstream.groups.consumer.records import group_tombstones
from millstream.groups.consumer.timer_keys import cancelled
from millstream.groups.group import CONSUMER
from millstream.protocol.errors import MalformedMessage
from millstream.replicated import Cancel, Decision, Schedule
from millstream.settings import GROUP_CONSUMER_MIGRATION_POLICY, GROUP_MAX_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.groups.assignors.spec import Partitions
    from millstream.groups.consumer.group import ConsumerGroup
    from millstream.groups.consumer.member import ConsumerMember
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.errors import ErrorCode
    from millstream.replicated import Record

DOWNGRADE_POLICIES = ("downgrade", "bidirectional")
PROTOCOL_TYPE = "consumer"


def can_downgrade_without(machine: GroupMachine, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> bool:
    """Whether the group without these members is one that classic members make up alone."""
    left = len(group.members) - len(members)
    left_classic = group.classic_count - sum(member.is_classic for member in members)
    return left > 0 and left == left_classic and _may_downgrade(machine, left)


def can_downgrade_with(machine: GroupMachine, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
    """Whether only classic members are left once a classic one takes the place of this static member."""
    return (
        not replaced.is_classic
        and group.classic_count == len(group.members) - 1
        and _may_downgrade(machine, len(group.members))
    )


def _may_downgrade(machine: GroupMachine, size: int) -> bool:
    policy = machine.settings[GROUP_CONSUMER_MIGRATION_POLICY].lower()
    return policy in DOWNGRADE_POLICIES and size <= machine.settings[GROUP_MAX_SIZE]


def decide_downgrade(
    machine: GroupMachine, group: ConsumerGroup, leaving: Sequence[ConsumerMember], response: Any, now_ms: int
) -> Decision[Any]:
    """The group goes on as a classic one, without those who leave."""
    gone = {member.id for member in leaving}
    staying = {
        member.id: (member, group.target.get(member.id, NO_PARTITIONS))
        for member in group.members.values()
        if member.id not in gone
    }
    records = group.tombstones()
    return downgraded(machine, group, records, staying.values(), response, now_ms)


def downgraded(
    machine: GroupMachine,
    group: ConsumerGroup,
    records: Sequence[Record],
    staying: Iterable[tuple[ConsumerMember, Partitions]],
    response: Any,
    now_ms: int,
    *,
    rebalance: bool = True,
) -> Decision[Any]:
    """The decision. `records` remove the consumer group; each of `staying` comes with what it shall have."""
    classic = _converted(machine, group, staying, now_ms)
    timers: list[Schedule | Cancel] = [timer for member_id in group.members for timer in cancelled(group.id, member_id)]
    timers.append(Cancel((CONSUMER, group.id, "patterns")))
    timers += (classic.keep_session(member) for member in classic.members.values())
    if rebalance:
        # In a decision of its own: this one's record says that the group is stable.
        timers.append(Schedule(classic.rebalance_timer, 0))
    machine.lookups.pop(group.id, None)
    machine.groups[group.id] = classic

    def restore(_: ErrorCode) -> Decision[Any]:
        machine.groups[group.id] = group
        return Decision()

    return Decision(
        records=(*records, classic.record(classic.assignments)), response=response, timers=tuple(timers), undo=restore
    )


def all_tombstones(group: ConsumerGroup, *, renamed: tuple[str, str]) -> tuple[Record, ...]:
    """Removes the group, a member of which was given another id in the same decision."""
    old_id, new_id = renamed
    ids = [new_id if member_id == old_id else member_id for member_id in group.members]
    return group_tombstones(group.id, ids, group.subscriptions.resolved)


def _converted(
    machine: GroupMachine, group: ConsumerGroup, staying: Iterable[tuple[ConsumerMember, Partitions]], now_ms: int
) -> ClassicGroup:
    classic = ClassicGroup(group.id, now_ms)
    targets: dict[str, Partitions] = {}
    for member, target in staying:
        assert member.classic is not None, "only classic members stay in a classic group"
        targets[member.id] = target
        classic.add(
            ClassicMember(
                id=member.id,
                instance_id=member.instance_id,
                client=Client(member.client_id, member.client_host),
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.classic.session_timeout_ms,
                protocols={protocol.name: bytes(protocol.metadata) for protocol in member.classic_protocols},
            )
        )
    classic.become_stable(PROTOCOL_TYPE, group.epoch)
    protocol = classic.protocol or ""
    for joined in classic.members.values():
        joined.assignment = write_assignment(targets[joined.id], machine.image, _version_of(joined.protocols[protocol]))
    return classic


def _version_of(metadata: bytes) -> int:
    try:
        return read_version(metadata)
    except MalformedMessage:
        return 0
