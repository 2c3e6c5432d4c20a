"""The target assignment: computed anew when the group has entered a new epoch, by whichever heartbeat comes next.

Not too often, though: between two of them pass at least `group.consumer.assignment.interval.ms` (KIP-1263), so a group
whose members arrive one by one is not assigned once for each of them. Until then members go on with the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.assignors import ASSIGNORS
from millstream.groups.assignors.spec import GroupSpec, MemberSpec
from millstream.groups.consumer.config import ConsumerConfig, assignor_names
from millstream.groups.consumer.partitions import NO_PARTITIONS
from millstream.groups.consumer.reconciling import Target
from millstream.groups.consumer.records import target_epoch_record, target_record

if TYPE_CHECKING:
    from millstream.groups.assignors.spec import Partitions
    from millstream.groups.consumer.member import ConsumerMember
    from millstream.groups.consumer.step import Step
    from millstream.metadata.image import MetadataImage
    from millstream.protocol.uuid import Uuid


def update_target(step: Step, member: ConsumerMember) -> Target:
    """What `member` shall have, by a new target assignment if one is due; its records are in the step then."""
    group = step.group
    # While members gather, the target is theirs to make (gathering.py).
    if group.id in step.machine.gathering or not is_target_due(step):
        return Target(group.target_epoch, group.target_of(member.id, member.instance_id))
    return Target(step.epoch, assign(step, member).get(member.id, NO_PARTITIONS))


def is_target_due(step: Step) -> bool:
    """Whether the group's last target is of an older epoch, and not too young to be replaced."""
    group = step.group
    if group.target_epoch >= step.epoch:
        return False
    interval_ms = ConsumerConfig.of(step.machine, group.id).assignment_interval_ms
    since_ms = group.target_timestamp_ms
    return since_ms == 0 or interval_ms == 0 or step.now_ms >= since_ms + interval_ms


def assign(step: Step, member: ConsumerMember) -> dict[str, Partitions]:
    """A new target for all members, `member` as it is now among them."""
    group = step.group
    name = step.subscriptions.favourite_assignor()
    if name not in ASSIGNORS:
        name = assignor_names(step.machine.settings)[0]
    spec = _spec(step, member)
    assigned = ASSIGNORS[name](spec)
    for member_id in spec.members:
        target = assigned.get(member_id, NO_PARTITIONS)
        known = group.target.get(member_id)
        # Who keeps all that it has, keeps the same mapping: most members, most of the time.
        if known is not target and known != target:
            step.records.append(target_record(group.id, member_id, target))
    step.records.append(target_epoch_record(group.id, step.epoch, step.now_ms))
    return assigned


def _spec(step: Step, member: ConsumerMember) -> GroupSpec:
    """The group with the member as it is now."""
    group, image = step.group, step.machine.image
    ids: dict[frozenset[str], frozenset[Uuid]] = {}

    def told(each: ConsumerMember, assigned_to: str) -> MemberSpec:
        names = group.subscriptions.topics_of(each)
        found = ids.get(names)
        if found is None:
            found = ids[names] = topic_ids(names, image)
        return MemberSpec(found, group.target.get(assigned_to, NO_PARTITIONS), each.instance_id)

    # A static member that came back has the place of its former self, and what that one had.
    former_id = group.static_members.get(member.instance_id, member.id) if member.instance_id else member.id
    specs = {each.id: told(each, each.id) for each in group.members.values() if each.id not in (former_id, member.id)}
    specs[member.id] = told(member, former_id)
    counts = {id_: len(image.topics.by_id[id_].partitions) for found in ids.values() for id_ in found}
    return GroupSpec(specs, counts, step.is_homogeneous)


def topic_ids(names: frozenset[str], image: MetadataImage) -> frozenset[Uuid]:
    """The ids of those that exist."""
    by_name = image.topics.by_name
    return frozenset(by_name[name].id for name in names if name in by_name)
