"""The range assignor: of each topic every member gets a run of neighbouring partitions.

Members stand in the order of their instance ids, then of their member ids, so the same member has the same place in
every topic, and topics with as many partitions are co-partitioned. It is not sticky.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.groups.assignors.spec import GroupSpec, Partitions
    from millstream.protocol.uuid import Uuid


def assign_range(spec: GroupSpec) -> dict[str, Partitions]:
    names = sorted(spec.members, key=lambda name: _place(spec, name))
    readers: dict[Uuid, list[str]] = {}
    if spec.homogeneous:
        # All read what the first one reads.
        readers = dict.fromkeys(sorted(spec.members[names[0]].topics), names) if names else {}
    else:
        for name in names:
            for topic in sorted(spec.members[name].topics):
                readers.setdefault(topic, []).append(name)
    assigned: dict[str, dict[Uuid, frozenset[int]]] = {name: {} for name in names}
    for topic, members in readers.items():
        quota, odd = divmod(spec.partition_counts[topic], len(members))
        start = 0
        for place, name in enumerate(members):
            end = start + quota + (place < odd)
            if start < end:
                assigned[name][topic] = frozenset(range(start, end))
            start = end
    return dict(assigned)


def _place(spec: GroupSpec, name: str) -> tuple[bool, bytes]:
    """Static members first. Java compares UTF-16 units, and so do their bytes, big end first."""
    instance_id = spec.members[name].instance_id
    return instance_id is None, (instance_id or name).encode("utf-16-be", "surrogatepass")
