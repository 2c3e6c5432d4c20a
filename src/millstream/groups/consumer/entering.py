"""A member came or said something new of itself: what that means for the group, its target assignment and the member.

Members of both protocols come through here; what they say is in a `ConsumerMember` by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.consumer.patterns import PatternChange, update_patterns
from millstream.groups.consumer.reconciling import reconcile
from millstream.groups.consumer.records import assignment_record, member_record, member_tombstones, target_record
from millstream.groups.consumer.targeting import topic_ids, update_target
from millstream.groups.consumer.timer_keys import cancelled, rebalance_timer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.groups.consumer.member import ConsumerMember
    from millstream.groups.consumer.partitions import ListedPartitions
    from millstream.groups.consumer.reconciling import Target
    from millstream.groups.consumer.step import Step


def enter(
    step: Step,
    member: ConsumerMember,
    updated: ConsumerMember,
    may_describe: Callable[[str], bool],
    reported: Sequence[ListedPartitions] | None,
) -> ConsumerMember:
    """The member is `updated` now: follow what that means for the group, its target assignment and the member."""
    subscription_changed = update_subscription(step, member, updated, may_describe)
    target = update_target(step, updated)
    return place(step, updated, target, subscription_changed=subscription_changed, reported=reported)


def update_subscription(
    step: Step, member: ConsumerMember, updated: ConsumerMember, may_describe: Callable[[str], bool]
) -> bool:
    """Whether the member reads other topics than before. The group enters a new epoch then, or if topics changed."""
    group = step.group
    if updated != member:
        step.records.append(member_record(group.id, updated))
    names_changed = updated.topics != member.topics
    pattern_change = update_patterns(step, member, updated, may_describe)
    if names_changed or updated.pattern != member.pattern or updated.assignor != member.assignor:
        step.change_subscriptions()
        step.subscriptions.replace(member, updated)
        if member.pattern and member.pattern != updated.pattern:
            step.subscriptions.drop_unused_patterns([member.pattern])
    if updated.id not in group.members and updated.instance_id not in group.static_members:
        step.member_count += 1
    bump = names_changed or pattern_change is PatternChange.CHANGED_AND_RESOLVED
    if bump or not group.has_seen(step.machine.image.topics):
        step.update_metadata(bump=bump)
    return names_changed or pattern_change is not PatternChange.NONE


def place(
    step: Step,
    updated: ConsumerMember,
    target: Target,
    *,
    subscription_changed: bool,
    reported: Sequence[ListedPartitions] | None,
) -> ConsumerMember:
    """Move the member towards its target, with the record and the timer that this takes."""
    group = step.group
    if not subscription_changed and updated.is_reconciled_to(target.epoch):
        return updated
    placed = reconcile(
        group,
        updated,
        target,
        topic_ids=topic_ids(group.subscriptions.topics_of(updated), step.machine.image),
        subscription_changed=subscription_changed,
        reported=reported,
    )
    if placed != updated:
        step.records.append(assignment_record(group.id, placed))
        if not placed.is_classic:
            step.timers.append(rebalance_timer(group.id, placed))
    return placed


def replace_static_member(step: Step, known: ConsumerMember, member_id: str) -> ConsumerMember:
    """A static member came back, under this member id: it takes over what its former self had."""
    group_id = step.group.id
    came = known.but(id=member_id, epoch=0, previous_epoch=0)
    step.records += member_tombstones(group_id, known.id)
    step.timers += cancelled(group_id, known.id)
    step.records += (
        member_record(group_id, came),
        target_record(group_id, came.id, step.group.target.get(known.id, {})),
        assignment_record(group_id, came),
    )
    return came
