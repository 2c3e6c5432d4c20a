"""Whether a member of a consumer group may commit, or fetch, offsets.

A commit names the member's epoch. A commit of an older epoch is still right for partitions that the member has had
since then or longer (KIP-1251); for others it may come after the partition has gone to a new owner, and is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.errors import IllegalGeneration, StaleMemberEpoch, UnknownMember, UnsupportedVersion

if TYPE_CHECKING:
    from millstream.groups.consumer.group import ConsumerGroup
    from millstream.groups.consumer.member import ConsumerMember
    from millstream.groups.group import CheckPartition
    from millstream.protocol.errors import BrokerError
    from millstream.protocol.uuid import Uuid

MEMBER_EPOCHS_SINCE = 9
NO_EPOCH = -1


def check_commit(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    epoch: int,
    *,
    transactional: bool,
    version: int,
) -> CheckPartition | None:
    if epoch < 0 and group.is_empty:
        return None  # an admin, or a consumer that assigns to itself
    if transactional and epoch == NO_EPOCH and not member_id and instance_id is None:
        return None  # a producer that does not know of groups' epochs
    member = group.member(member_id)
    if not transactional and not member.is_classic and version < MEMBER_EPOCHS_SINCE:
        raise UnsupportedVersion("members of the new consumer protocol commit with version 9 or later")
    if epoch == member.epoch:
        return None
    if epoch > member.epoch:
        raise _stale(member, f"epoch {epoch} is newer than the member's epoch, {member.epoch}")

    def check_partition(topic: str, topic_id: Uuid, partition: int) -> None:
        since = member.assigned.get(topic_id, {}).get(partition)
        if since is None:
            since = member.revoking.get(topic_id, {}).get(partition)
        if since is None:
            raise _stale(member, f"{topic}-{partition} is not the member's")
        if epoch < since:
            raise _stale(member, f"epoch {epoch} is older than {since}, since when {topic}-{partition} is the member's")

    return check_partition


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    if member_id is None and epoch < 0:
        return
    if member_id is None:
        raise UnknownMember(f"group '{group.id}' knows its members by id")
    member = group.member(member_id)
    if epoch != member.epoch:
        raise _stale(member, f"the member's epoch is {member.epoch}, not {epoch}")


def _stale(member: ConsumerMember, sentence: str) -> BrokerError:
    """In words that the member's own protocol has."""
    return IllegalGeneration(sentence) if member.is_classic else StaleMemberEpoch(sentence)
