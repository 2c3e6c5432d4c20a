"""ConsumerGroupHeartbeat: a member joins, keeps its place, says what has changed, lets go of partitions, leaves.

A field that a member leaves out is as it was. The answer has the member's epoch, and its partitions when they changed,
when it joins, and when it said everything of itself anew (it may have lost an answer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.classic.group import ClassicGroup
from millstream.groups.consumer.answers import heartbeat_answer
from millstream.groups.consumer.checks import (
    check_epoch,
    check_instance_is_known,
    check_instance_is_not_fenced,
    check_instance_is_released,
    check_room,
)
from millstream.groups.consumer.config import ConsumerConfig
from millstream.groups.consumer.entering import place, replace_static_member, update_subscription
from millstream.groups.consumer.gathering import Waiting, must_wait, wait
from millstream.groups.consumer.group import ConsumerGroup
from millstream.groups.consumer.leaving import decide_leave
from millstream.groups.consumer.member import JOIN_EPOCH, ConsumerMember
from millstream.groups.consumer.step import Step
from millstream.groups.consumer.targeting import update_target
from millstream.groups.consumer.timer_keys import session_timer
from millstream.groups.consumer.upgrade import upgrade
from millstream.groups.consumer.validation import check_heartbeat
from millstream.protocol.errors import GroupNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.classic.member import Client
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )
    from millstream.replicated import Decision, Token


def decide_consumer_heartbeat(
    machine: GroupMachine,
    request: ConsumerGroupHeartbeatRequest,
    version: int,
    client: Client,
    may_describe: Callable[[str], bool],
    token: Token,
    now_ms: int,
) -> Decision[ConsumerGroupHeartbeatResponse]:
    check_heartbeat(request, version, machine.settings)
    if request.member_epoch < JOIN_EPOCH:
        return decide_leave(machine, _existing_group(machine, request.group_id), request, now_ms)
    step = _step(machine, request.group_id, now_ms, joins=request.member_epoch == JOIN_EPOCH)
    check_room(machine, step.group, request.member_id)
    member = _member(step, request)
    updated = _updated(member, request, client)
    changed = update_subscription(step, member, updated, may_describe)
    session_timeout_ms = ConsumerConfig.of(machine, step.group.id).session_timeout_ms
    step.timers.append(session_timer(step.group.id, updated.id, session_timeout_ms))
    tells_all = request.member_epoch == JOIN_EPOCH or _says_everything(request)
    if must_wait(step, changed=changed):
        return wait(step, Waiting(token, updated.id, tells_all, changed, request.topic_partitions))
    target = update_target(step, updated)
    placed = place(step, updated, target, subscription_changed=changed, reported=request.topic_partitions)
    return step.decision(heartbeat_answer(step, placed, tell=tells_all or placed.assigned != member.assigned))


# --- which group, which member


def _existing_group(machine: GroupMachine, group_id: str) -> ConsumerGroup:
    group = machine.group(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if group is None:
        raise GroupNotFound(f"Group {group_id} not found.")
    raise GroupNotFound(f"Group {group_id} is not a consumer group.")


def _step(machine: GroupMachine, group_id: str, now_ms: int, *, joins: bool) -> Step:
    """A decision on the group; who joins may found it, or turn a classic group into it."""
    group = machine.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return Step(machine, group, now_ms)
    if not joins:
        if machine.group(group_id) is None:
            raise GroupNotFound(f"Consumer group {group_id} not found.")
        raise GroupNotFound(f"Group {group_id} is not a consumer group.")
    if isinstance(group, ClassicGroup):
        return upgrade(machine, group, now_ms)
    step = Step(machine, ConsumerGroup(group_id), now_ms)
    simple = machine.group(group_id)
    if simple is not None:
        # Whoever reads the log may have taken its offsets for a classic group's.
        step.records += simple.tombstones()
    return step


def _member(step: Step, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """The member as the group knows it, or a new one."""
    group, joins = step.group, request.member_epoch == JOIN_EPOCH
    # Before version 1 a new member is given its id.
    member_id = request.member_id or str(step.machine.new_uuid())
    if request.instance_id is None:
        member = group.members.get(member_id) or ConsumerMember(id=member_id) if joins else group.member(member_id)
        check_epoch(member, request.member_epoch, request.topic_partitions)
        return member
    known = group.static_member(request.instance_id)
    if not joins:
        known = check_instance_is_known(group, request.instance_id)
        check_instance_is_not_fenced(known, member_id, request.instance_id)
        check_epoch(known, request.member_epoch, request.topic_partitions)
        return known
    if known is None:
        return group.members.get(member_id) or ConsumerMember(id=member_id)
    if not known.is_classic:
        check_instance_is_released(known, member_id, request.instance_id)
    return replace_static_member(step, known, member_id)


def _updated(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client) -> ConsumerMember:
    names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
    return member.but(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topics=member.topics if names is None else frozenset(names),
        pattern=member.pattern if pattern is None else pattern,
        client_id=client.id,
        client_host=client.host,
        classic=None,
    )


# --- the answer


def _says_everything(request: ConsumerGroupHeartbeatRequest) -> bool:
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
