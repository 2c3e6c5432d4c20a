"""Moves one member towards the target assignment, as far as it can go now (KIP-848's reconciliation).

    STABLE                  has what the target of its epoch gives to it
    UNREVOKED_PARTITIONS    was told to let go of partitions; its epoch waits until it says that it did
    UNRELEASED_PARTITIONS   is in the newest epoch, but some of its partitions have not been let go by their owners

A member first gives back what is not its own any more, then enters the target's epoch, then gets what is free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.groups.consumer.member import MemberState
from millstream.groups.consumer.partitions import NOTHING_OWNED
from millstream.protocol.errors import FencedMemberEpoch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.groups.assignors.spec import Partitions
    from millstream.groups.consumer.group import ConsumerGroup
    from millstream.groups.consumer.member import ConsumerMember
    from millstream.groups.consumer.partitions import ListedPartitions, Owned
    from millstream.protocol.uuid import Uuid


class Target(NamedTuple):
    """What a member shall have, and the epoch of the assignment that says so."""

    epoch: int
    partitions: Partitions


def reconcile(
    group: ConsumerGroup,
    member: ConsumerMember,
    target: Target,
    *,
    topic_ids: frozenset[Uuid],
    subscription_changed: bool,
    reported: Sequence[ListedPartitions] | None,
) -> ConsumerMember:
    """The member after its heartbeat; the same object if nothing moved.

    `topic_ids` are the topics that the member reads; `reported` is what it says it owns, None if it says nothing.
    """
    step = _Step(group, member, target, topic_ids, reported)
    match member.state:
        case MemberState.STABLE:
            if member.epoch != target.epoch:
                return step.next_assignment(member.epoch)
            return step.without_foreign_topics() if subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if step.still_owns(member.revoking):
                return step.without_foreign_topics() if subscription_changed else member
            return step.next_assignment(member.epoch)
        case MemberState.UNRELEASED_PARTITIONS:
            return step.next_assignment(member.epoch)
        case MemberState.UNKNOWN:
            # Only the member itself can tell what it reads: it has to say that it reads nothing.
            if reported is None or len(reported) > 0:
                raise FencedMemberEpoch(
                    "The consumer group member is in a unknown state. The member must abandon all its partitions and "
                    "rejoin."
                )
            return step.next_assignment(target.epoch)


class _Step:
    def __init__(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        target: Target,
        topic_ids: frozenset[Uuid],
        reported: Sequence[ListedPartitions] | None,
    ) -> None:
        self.group = group
        self.member = member
        self.target = target
        self.topic_ids = topic_ids
        self.reported = reported

    def still_owns(self, revoking: Owned) -> bool:
        """Whether the member may still read some of these; one that does not say what it reads may."""
        if self.reported is None:
            return True
        return any(
            partition in revoking.get(topic.topic_id, ()) for topic in self.reported for partition in topic.partitions
        )

    def without_foreign_topics(self) -> ConsumerMember:
        """Topics that the member does not read any more are taken from it at once, before the next target says so."""
        member = self.member
        foreign = {id_: owned for id_, owned in member.assigned.items() if id_ not in self.topic_ids}
        if not foreign:
            return member
        assigned = {id_: owned for id_, owned in member.assigned.items() if id_ in self.topic_ids}
        revoking = dict(member.revoking)
        for topic_id, owned in foreign.items():
            revoking[topic_id] = {**revoking.get(topic_id, {}), **owned}
        changed = member.but(assigned=assigned, previous_epoch=member.epoch)
        if self.still_owns(revoking):
            return changed.but(state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)
        return changed

    def next_assignment(self, epoch: int) -> ConsumerMember:
        """Keep what the target has too; give back the rest; take what is free. `epoch` is kept while giving back."""
        member, target = self.member, self.target
        keeps: dict[Uuid, dict[int, int]] = {}
        gives_back: dict[Uuid, dict[int, int]] = {}
        takes: dict[Uuid, list[int]] = {}
        waits = False
        for topic_id in dict.fromkeys((*target.partitions, *member.assigned)):
            wanted = target.partitions.get(topic_id, frozenset()) if topic_id in self.topic_ids else frozenset()
            has = member.assigned.get(topic_id, {})
            kept = {partition: since for partition, since in has.items() if partition in wanted}
            given = {partition: since for partition, since in has.items() if partition not in wanted}
            taken = []
            for partition in sorted(wanted):
                if partition in has:
                    continue
                if self._is_available(topic_id, partition):
                    taken.append(partition)
                else:
                    waits = True
            if kept:
                keeps[topic_id] = kept
            if given:
                gives_back[topic_id] = given
            if taken:
                takes[topic_id] = taken
        if gives_back and self.still_owns(gives_back):
            return member.but(
                state=MemberState.UNREVOKED_PARTITIONS,
                epoch=epoch,
                previous_epoch=member.epoch,
                assigned=keeps,
                revoking=gives_back,
            )
        for topic_id, partitions in takes.items():
            keeps.setdefault(topic_id, {}).update(dict.fromkeys(partitions, target.epoch))
        return member.but(
            state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
            epoch=target.epoch,
            previous_epoch=member.epoch,
            assigned=keeps,
            revoking=NOTHING_OWNED,
        )

    def _is_available(self, topic_id: Uuid, partition: int) -> bool:
        # What the member itself was about to let go of, and has by now, is not held by anybody else.
        return self.group.is_free(topic_id, partition) or partition in self.member.revoking.get(topic_id, ())
