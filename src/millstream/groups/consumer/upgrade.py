"""A classic group becomes a consumer group when somebody joins it by the new protocol: live, with its members in place.

The members keep their partitions and go on with the classic protocol (classic_members.py); requests of theirs that wait
are answered with REBALANCE_IN_PROGRESS, and they come again. The last generation is the group's first epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.classic.answers import join_answer, sync_answer
from millstream.groups.consumer.embedded_protocol import partitions_by_id, read_assignment, read_subscription
from millstream.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from millstream.groups.consumer.member import ConsumerMember
from millstream.groups.consumer.partitions import NO_PARTITIONS, owned_since
from millstream.groups.consumer.records import (
    assignment_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from millstream.groups.consumer.step import Step
from millstream.groups.consumer.timer_keys import session_timer
from millstream.groups.consumer.topic_hash import group_hash
from millstream.protocol.errors import ErrorCode, GroupNotFound, MalformedMessage
from millstream.protocol.messages.groups.consumer_group_member_metadata import ClassicMemberMetadata, ClassicProtocol
from millstream.replicated import Cancel, Reply
from millstream.settings import GROUP_CONSUMER_MAX_SIZE, GROUP_CONSUMER_MIGRATION_POLICY

if TYPE_CHECKING:
    from millstream.groups.assignors.spec import Partitions
    from millstream.groups.classic.group import ClassicGroup
    from millstream.groups.classic.member import ClassicMember
    from millstream.groups.machine import GroupMachine

UPGRADE_POLICIES = ("upgrade", "bidirectional")


def upgrade(machine: GroupMachine, classic: ClassicGroup, now_ms: int) -> Step:
    """A decision on the consumer group that the classic one becomes. Until it is carried out, nothing has changed."""
    if classic.is_empty:
        step = Step(machine, ConsumerGroup(classic.id), now_ms)
        step.records += classic.tombstones()
        return step
    _check(machine, classic)
    group = _converted(machine, classic)
    step = Step(machine, group, now_ms)
    step.records += classic.tombstones()
    step.records += [member_record(group.id, member) for member in group.members.values()]
    step.records.append(epoch_record(group.id, group.epoch, group.metadata_hash))
    step.records += [target_record(group.id, member_id, target) for member_id, target in group.target.items()]
    step.records.append(target_epoch_record(group.id, group.target_epoch, group.target_timestamp_ms))
    step.records += [assignment_record(group.id, member) for member in group.members.values()]
    _take_over(classic, step)
    return step


def _check(machine: GroupMachine, classic: ClassicGroup) -> None:
    # The group is not one that the new protocol can use: so there is none for it. Kafka's own way to say no.
    refusal = f"Cannot upgrade classic group {classic.id} to consumer group because "
    if machine.settings[GROUP_CONSUMER_MIGRATION_POLICY].lower() not in UPGRADE_POLICIES:
        raise GroupNotFound(f"{refusal}online upgrade is disabled.")
    if classic.protocol_type != PROTOCOL_TYPE:
        raise GroupNotFound(f"{refusal}the group does not use the consumer embedded protocol.")
    if len(classic.members) > machine.settings[GROUP_CONSUMER_MAX_SIZE]:
        raise GroupNotFound(f"{refusal}the group size exceeds the consumer group maximum size.")


def _converted(machine: GroupMachine, classic: ClassicGroup) -> ConsumerGroup:
    group = ConsumerGroup(classic.id)
    group.epoch = group.target_epoch = classic.generation
    # A group in its very first join phase has not chosen yet, and may have lost its members again.
    protocol = classic.protocol or (classic.select_protocol() if classic.members else "")
    for member in classic.members.values():
        try:
            subscription = read_subscription(member.protocols[protocol])
            target = _assigned(machine, classic, member)
        except MalformedMessage:
            raise GroupNotFound(
                f"Cannot upgrade classic group {classic.id} to consumer group because the embedded consumer protocol "
                "is malformed."
            ) from None
        group.target[member.id] = target
        group.put(
            ConsumerMember(
                id=member.id,
                instance_id=member.instance_id,
                rack_id=subscription.rack_id or None,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                client_id=member.client.id,
                client_host=member.client.host,
                topics=frozenset(subscription.topics),
                classic=classic_part(member),
                epoch=classic.generation,
                previous_epoch=classic.generation,
                assigned=owned_since(target, classic.generation),
            )
        )
    group.metadata_hash = group_hash(group.subscriptions.topics(), machine.image, machine.topic_hashes)
    return group


def _assigned(machine: GroupMachine, classic: ClassicGroup, member: ClassicMember) -> Partitions:
    if not member.assignment:
        return NO_PARTITIONS
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise GroupNotFound(
            f"Cannot upgrade classic group {classic.id} to consumer group because an unsupported custom assignor is "
            "in use. Switch to one of the default assignors first."
        )
    return partitions_by_id(assignment, machine.image)


def classic_part(member: ClassicMember) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=member.session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols.items()
        ],
    )


def _take_over(classic: ClassicGroup, step: Step) -> None:
    """Answer who waits for the classic group, and let the members' sessions go on in the new one."""
    code = ErrorCode.REBALANCE_IN_PROGRESS
    step.timers += (Cancel(classic.join_timer), Cancel(classic.sync_timer))
    step.timers += (Cancel(classic.session_timer(member_id)) for member_id in classic.pending_ids)
    for member in classic.members.values():
        step.timers.append(Cancel(classic.session_timer(member.id)))
        step.timers.append(session_timer(classic.id, member.id, member.session_timeout_ms))
        if member.join is not None:
            answer = join_answer(member.join.version, member_id=member.id, error=code)
            step.replies.append(Reply(member.join.token, answer))
        if member.sync is not None:
            step.replies.append(Reply(member.sync.token, sync_answer(error=code)))
