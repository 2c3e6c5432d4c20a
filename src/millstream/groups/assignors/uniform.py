"""The uniform assignor: all members get as many partitions as the others, and keep what they have.

Where all members read the same topics, a count tells who has too much. Where they don't, topics are spread one by one
(uniform_mixed.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.assignors.java_order import copied_order, grown_order, int_hash, string_hash, uuid_hash
from millstream.groups.assignors.uniform_mixed import assign_mixed

if TYPE_CHECKING:
    from millstream.groups.assignors.spec import GroupSpec, Partitions
    from millstream.protocol.uuid import Uuid


def assign_uniform(spec: GroupSpec) -> dict[str, Partitions]:
    if not spec.members:
        return {}
    names = grown_order(spec.members, string_hash)
    return _Even(spec, names).assign() if spec.homogeneous else assign_mixed(spec, names)


class _Even:
    """One assignment of a group whose members all read the same topics."""

    def __init__(self, spec: GroupSpec, names: list[str]) -> None:
        self.spec = spec
        self.names = names
        self.topics = spec.members[names[0]].topics
        self.free: list[tuple[Uuid, int]] = []
        # What members keep; those who keep all that they have share their old mapping.
        self.kept: dict[str, Partitions] = {}
        # Members that have room, and for how many.
        self.unfilled: list[tuple[str, int]] = []

    def assign(self) -> dict[str, Partitions]:
        if not self.topics:
            return {}
        self._find_free()
        total = sum(self.spec.partition_counts[topic] for topic in self.topics)
        self._take_back(*divmod(total, len(self.names)))
        self._hand_out()
        return self.kept

    def _find_free(self) -> None:
        owned: dict[Uuid, set[int]] = {}
        for member in self.spec.members.values():
            for topic, partitions in member.assigned.items():
                owned.setdefault(topic, set()).update(partitions)
        for topic in copied_order(sorted(self.topics), uuid_hash):
            taken = owned.get(topic, ())
            self.free += [
                (topic, partition) for partition in range(self.spec.partition_counts[topic]) if partition not in taken
            ]

    def _take_back(self, quota_min: int, extras: int) -> None:
        """Take what is above a member's quota. The first members in order may have one more, as long as extras last."""
        for index, name in enumerate(self.names):
            assigned = self.spec.members[name].assigned
            quota = quota_min
            has_extra = extras > 0
            if has_extra:
                quota += 1
            kept: dict[Uuid, frozenset[int]] | None = None
            for topic in grown_order(assigned, uuid_hash):
                partitions = assigned[topic]
                if topic not in self.topics:
                    kept = kept if kept is not None else dict(assigned)
                    del kept[topic]
                elif len(partitions) <= quota:
                    quota -= len(partitions)
                else:
                    ordered = copied_order(sorted(partitions), int_hash)
                    kept = kept if kept is not None else dict(assigned)
                    if quota:
                        kept[topic] = frozenset(ordered[:quota])
                    else:
                        del kept[topic]
                    self.free += [(topic, partition) for partition in ordered[quota:]]
                    quota = 0
            if quota > 0 and has_extra and len(self.names) - index > extras:
                # It does not need its extra to keep what it has: somebody later may.
                quota -= 1
                has_extra = False
            if quota > 0:
                self.unfilled.append((name, quota))
            if has_extra:
                extras -= 1
            self.kept[name] = assigned if kept is None else kept

    def _hand_out(self) -> None:
        start = 0
        for name, room in self.unfilled:
            given: dict[Uuid, list[int]] = {}
            for topic, partition in self.free[start : start + room]:
                given.setdefault(topic, []).append(partition)
            start += room
            if given:
                merged = dict(self.kept[name])
                for topic, partitions in given.items():
                    merged[topic] = merged.get(topic, frozenset()).union(partitions)
                self.kept[name] = merged
        assert start >= len(self.free), "every partition finds a member"
