"""What an assignor is told of a group, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from millstream.protocol.uuid import Uuid

# The partitions of a member by topic. Topics without partitions are left out.
Partitions = Mapping[Uuid, frozenset[int]]


class MemberSpec(NamedTuple):
    """One member: its topics (existing ones only), and what the last target assignment gave to it."""

    topics: frozenset[Uuid]
    assigned: Partitions
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    """A group's members by id, and the partition counts of all topics that any of them reads."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[Uuid, int]
    # Whether all members read the same topics, as far as the group can tell without comparing them one by one.
    homogeneous: bool
