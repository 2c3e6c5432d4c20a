"""Classic members inside a consumer group, while a fleet of consumers is being moved to the new protocol or back.

They speak JoinGroup, SyncGroup, Heartbeat and LeaveGroup as ever; the group answers from its epochs. A member's epoch
is its generation. JoinGroup is answered at once (nobody waits for the others) without a leader, SyncGroup brings what
the member has by now, and a Heartbeat says REBALANCE_IN_PROGRESS whenever another round of the two would get it
further: the target moved on, it has partitions to let go of, or one that it waits for was let go.

A member that was told to join again and does not, or joins and does not sync, is removed after its rebalance timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.groups.classic.answers import join_answer, sync_answer
from millstream.groups.classic.member import protocols_of
from millstream.groups.consumer.checks import (
    check_instance_is_known,
    check_instance_is_not_fenced,
    check_room,
)
from millstream.groups.consumer.downgrade import all_tombstones, can_downgrade_with, downgraded
from millstream.groups.consumer.embedded_protocol import read_subscription, read_version, write_assignment
from millstream.groups.consumer.entering import enter, place, replace_static_member, update_subscription
from millstream.groups.consumer.leaving import decide_removals
from millstream.groups.consumer.member import ConsumerMember, MemberState
from millstream.groups.consumer.reconciling import Target
from millstream.groups.consumer.step import Step
from millstream.groups.consumer.timer_keys import cancelled_timer, member_timer, session_timer
from millstream.protocol.errors import (
    BrokerError,
    ErrorCode,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MalformedMessage,
    UnknownMember,
)
from millstream.protocol.messages.consumer_group_heartbeat import TopicPartitions
from millstream.protocol.messages.groups.consumer_group_member_metadata import ClassicMemberMetadata, ClassicProtocol
from millstream.protocol.messages.heartbeat import HeartbeatResponse
from millstream.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from millstream.replicated import Decision
from millstream.settings import GROUP_CONSUMER_MIGRATION_POLICY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.groups.classic.member import Client
    from millstream.groups.consumer.group import ConsumerGroup
    from millstream.groups.machine import GroupMachine
    from millstream.metadata.image import MetadataImage
    from millstream.protocol.messages.data.consumer_protocol_subscription import ConsumerProtocolSubscription
    from millstream.protocol.messages.heartbeat import HeartbeatRequest
    from millstream.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
    from millstream.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
    from millstream.protocol.messages.sync_group import SyncGroupRequest
    from millstream.replicated import Schedule

PROTOCOL_TYPE = "consumer"
MEMBER_ID_REQUIRED_SINCE = 4
REBALANCE_TIMEOUT_SINCE = 1


# --- JoinGroup


def decide_classic_join(
    machine: GroupMachine, group: ConsumerGroup, request: JoinGroupRequest, version: int, client: Client, now_ms: int
) -> Decision[JoinGroupResponse]:
    if machine.settings[GROUP_CONSUMER_MIGRATION_POLICY].lower() == "disabled":
        raise InconsistentGroupProtocol(
            f"Cannot join the consumer group {group.id} with the classic protocol because the group migration is "
            "disabled."
        )
    is_new = not request.member_id
    member_id = request.member_id or str(machine.new_uuid())
    check_room(machine, group, member_id)
    protocols = protocols_of(request.protocols)
    if not _supports(group, request.protocol_type, protocols):
        raise InconsistentGroupProtocol(f"Member {member_id}'s protocols are not supported.")
    if is_new and request.group_instance_id is None and version >= MEMBER_ID_REQUIRED_SINCE:
        return Decision(response=join_answer(version, member_id=member_id, error=ErrorCode.MEMBER_ID_REQUIRED))
    subscription = _subscription(protocols)
    step = Step(machine, group, now_ms)
    static = group.static_member(request.group_instance_id)
    member = _joining_member(step, request, member_id)
    updated = _updated(member, request, version, client, protocols, subscription)
    answer = join_answer(
        version,
        member_id=member_id,
        protocol_type=PROTOCOL_TYPE,
        protocol=next(iter(protocols)),
    )
    if static is not None and can_downgrade_with(machine, group, static):
        return _join_and_downgrade(step, static, member, updated, answer)
    reported = _reported(subscription, machine.image)
    placed = enter(step, member, updated, _anything, reported)
    answer.generation_id = placed.epoch
    group.awaited_joins.pop(member_id, None)
    step.timers += (
        cancelled_timer(group.id, "join", member_id),
        session_timer(group.id, member_id, request.session_timeout_ms),
        member_timer(group.id, "sync", member_id, updated.rebalance_timeout_ms),
    )
    return step.decision(answer)


def _anything(_topic: str) -> bool:
    """Classic members name their topics: no pattern of theirs is ever looked up here."""
    return True


def _supports(group: ConsumerGroup, protocol_type: str, protocols: Mapping[str, bytes]) -> bool:
    if protocol_type != PROTOCOL_TYPE or not protocols:
        return False
    return group.is_empty or any(group.classic_protocols[name] == group.classic_count for name in protocols)


def _subscription(protocols: Mapping[str, bytes]) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(next(iter(protocols.values())))
    except MalformedMessage:
        raise InconsistentGroupProtocol("the member's metadata is not that of a consumer") from None


def _joining_member(step: Step, request: JoinGroupRequest, member_id: str) -> ConsumerMember:
    group, instance_id = step.group, request.group_instance_id
    if instance_id is None:
        return group.members.get(member_id) or ConsumerMember(id=member_id)
    if request.member_id:
        known = check_instance_is_known(group, instance_id)
        check_instance_is_not_fenced(known, member_id, instance_id)
        return known
    former = group.static_member(instance_id)
    if former is None:
        return ConsumerMember(id=member_id)
    return replace_static_member(step, former, member_id)


def _updated(
    member: ConsumerMember,
    request: JoinGroupRequest,
    version: int,
    client: Client,
    protocols: Mapping[str, bytes],
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    timeout_ms = request.rebalance_timeout_ms if version >= REBALANCE_TIMEOUT_SINCE else request.session_timeout_ms
    return member.but(
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topics=frozenset(subscription.topics),
        pattern="",
        client_id=client.id,
        client_host=client.host,
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in protocols.items()],
        ),
    )


def _reported(subscription: ConsumerProtocolSubscription, image: MetadataImage) -> list[TopicPartitions]:
    by_name = image.topics.by_name
    return [
        TopicPartitions(topic_id=by_name[owned.topic].id, partitions=owned.partitions)
        for owned in subscription.owned_partitions
        if owned.topic in by_name
    ]


def _join_and_downgrade(
    step: Step,
    former: ConsumerMember,
    member: ConsumerMember,
    updated: ConsumerMember,
    answer: JoinGroupResponse,
) -> Decision[JoinGroupResponse]:
    """The last member of the new protocol came back as a classic one."""
    machine, group = step.machine, step.group
    subscription_changed = update_subscription(step, member, updated, _anything)
    is_behind = group.target_epoch < step.epoch
    target = group.target_of(former.id, former.instance_id)
    if not is_behind:
        updated = place(
            step,
            updated,
            Target(group.target_epoch, target),
            subscription_changed=subscription_changed,
            reported=[],
        )
    answer.generation_id = updated.epoch
    staying = [
        (updated, target) if each.id == former.id else (each, group.target.get(each.id, {}))
        for each in group.members.values()
    ]
    records = (*step.records, *all_tombstones(group, renamed=(former.id, updated.id)))
    return downgraded(machine, group, records, staying, answer, step.now_ms, rebalance=is_behind)


# --- SyncGroup and Heartbeat


def decide_classic_sync(machine: GroupMachine, group: ConsumerGroup, request: SyncGroupRequest) -> Decision[Any]:
    member = _sender(group, request.member_id, request.group_instance_id, request.generation_id)
    chosen = member.classic_protocols[0].name
    for told, actual in ((request.protocol_type, PROTOCOL_TYPE), (request.protocol_name, chosen)):
        if told is not None and told != actual:
            raise InconsistentGroupProtocol(f"the member uses '{actual}', not '{told}'")
    if group.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        return Decision(response=sync_answer(error=ErrorCode.REBALANCE_IN_PROGRESS), timers=_await_join(group, member))
    owned = {topic_id: frozenset(partitions) for topic_id, partitions in member.assigned.items()}
    version = read_version(bytes(member.classic_protocols[0].metadata))
    return Decision(
        response=sync_answer(
            protocol_type=request.protocol_type,
            protocol=request.protocol_name,
            assignment=write_assignment(owned, machine.image, version),
        ),
        timers=(cancelled_timer(group.id, "sync", member.id), _session(group, member)),
    )


def decide_classic_heartbeat(group: ConsumerGroup, request: HeartbeatRequest) -> Decision[HeartbeatResponse]:
    member = _sender(group, request.member_id, request.group_instance_id, request.generation_id)
    should_join = (
        member.epoch < group.target_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
    )
    return Decision(
        response=HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if should_join else ErrorCode.NONE),
        timers=(_session(group, member), *(_await_join(group, member) if should_join else ())),
    )


def _sender(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    member = _claimed(group, member_id, instance_id)
    if not member.is_classic:
        raise UnknownMember(f"Member {member.id} does not use the classic protocol.")
    if generation != member.epoch:
        raise IllegalGeneration(f"the member's epoch is {member.epoch}, not {generation}")
    return member


def _claimed(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        return group.member(member_id)
    member = check_instance_is_known(group, instance_id)
    check_instance_is_not_fenced(member, member_id, instance_id)
    return member


def _session(group: ConsumerGroup, member: ConsumerMember) -> Schedule:
    assert member.classic is not None, "asked of classic members only"
    return session_timer(group.id, member.id, member.classic.session_timeout_ms)


def _await_join(group: ConsumerGroup, member: ConsumerMember) -> tuple[Schedule, ...]:
    """It was told to join again: the time for that runs from the first time that it was told."""
    if member.id in group.awaited_joins:
        return ()
    group.awaited_joins[member.id] = None
    return (member_timer(group.id, "join", member.id, member.rebalance_timeout_ms),)


# --- LeaveGroup


def decide_classic_leave(
    machine: GroupMachine, group: ConsumerGroup, request: LeaveGroupRequest, now_ms: int
) -> Decision[LeaveGroupResponse]:
    """Members of both protocols may be told to leave so: it is how an admin removes them."""
    leaving: dict[str, ConsumerMember] = {}
    results = []
    for told in request.members:
        code = ErrorCode.NONE
        try:
            member = _leaver(group, told)
            leaving[member.id] = member
        except BrokerError as refusal:
            code = refusal.code
        results.append(
            MemberResponse(member_id=told.member_id, group_instance_id=told.group_instance_id, error_code=code)
        )
    return decide_removals(machine, group, list(leaving.values()), LeaveGroupResponse(members=results), now_ms)


def _leaver(group: ConsumerGroup, told: MemberIdentity) -> ConsumerMember:
    if told.group_instance_id is None:
        return group.member(told.member_id)
    member = check_instance_is_known(group, told.group_instance_id)
    if told.member_id:
        check_instance_is_not_fenced(member, told.member_id, told.group_instance_id)
    return member
