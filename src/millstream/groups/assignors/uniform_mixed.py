"""The uniform assignor for groups whose members read different topics.

Members keep what they have of the topics that they read. Free partitions go to the least loaded reader of their topic;
then, topic by topic, partitions move from the most to the least loaded reader, until nothing moves any more or
ROUNDS_MAX is reached. Topics with the most partitions per reader come first: they have the least choice.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING

from millstream.groups.assignors.balancer import Balancer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.groups.assignors.spec import GroupSpec, Partitions
    from millstream.protocol.uuid import Uuid

ROUNDS_MAX = 16
NOBODY = -1


def assign_mixed(spec: GroupSpec, names: list[str]) -> dict[str, Partitions]:
    return _Mixed(spec, names).assign()


class _Mixed:
    """One assignment. Members are numbers here: their places in `names`."""

    def __init__(self, spec: GroupSpec, names: list[str]) -> None:
        self.spec = spec
        self.names = names
        self.loads = [0] * len(names)
        self.readers: dict[Uuid, list[int]] = {}
        for index, name in enumerate(names):
            for topic in sorted(spec.members[name].topics):
                self.readers.setdefault(topic, []).append(index)
        self.owners = {topic: [NOBODY] * spec.partition_counts[topic] for topic in self.readers}

    def assign(self) -> dict[str, Partitions]:
        if not self.readers:
            return {}
        self._keep()
        self._hand_out()
        self._balance()
        assigned: dict[str, dict[Uuid, set[int]]] = {name: {} for name in self.names}
        for topic, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                assigned[self.names[owner]].setdefault(topic, set()).add(partition)
        return {
            name: {topic: frozenset(partitions) for topic, partitions in topics.items()}
            for name, topics in assigned.items()
        }

    def _keep(self) -> None:
        for index, name in enumerate(self.names):
            member = self.spec.members[name]
            for topic, partitions in member.assigned.items():
                if topic in member.topics:
                    owners = self.owners[topic]
                    for partition in partitions:
                        # A topic that was deleted and made again with fewer partitions has another id.
                        owners[partition] = index
                    self.loads[index] += len(partitions)

    def _in_order(self, topics: Iterable[Uuid]) -> list[Uuid]:
        return sorted(topics, key=cmp_to_key(self._compare))

    def _compare(self, one: Uuid, other: Uuid) -> int:
        one_readers, other_readers = len(self.readers[one]), len(self.readers[other])
        one_density = self.spec.partition_counts[one] / one_readers
        other_density = self.spec.partition_counts[other] / other_readers
        if one_density != other_density:
            return -1 if one_density > other_density else 1
        if one_readers != other_readers:
            return one_readers - other_readers
        return -1 if _signed(one) < _signed(other) else 1

    def _hand_out(self) -> None:
        balancer = Balancer(self.loads)
        free = {
            topic: [partition for partition, owner in enumerate(owners) if owner == NOBODY]
            for topic, owners in self.owners.items()
        }
        for topic in self._in_order(topic for topic, partitions in free.items() if partitions):
            balancer.start(self.readers[topic])
            for partition in free[topic]:
                self._give(topic, partition, balancer.next_least_loaded())

    def _give(self, topic: Uuid, partition: int, member: int) -> None:
        owners = self.owners[topic]
        if owners[partition] != NOBODY:
            self.loads[owners[partition]] -= 1
        owners[partition] = member
        self.loads[member] += 1

    # --- balance

    def _balance(self) -> None:
        topics = self._in_order(topic for topic, readers in self.readers.items() if len(readers) > 1)
        balancer = Balancer(self.loads)
        # Where the last partition moved: once everything since then stood still, so does the rest.
        last_moved = NOBODY
        for _ in range(ROUNDS_MAX):
            for place, topic in enumerate(topics):
                if place == last_moved:
                    return
                if self._balance_topic(topic, balancer) > 0 or last_moved == NOBODY:
                    last_moved = place

    def _balance_topic(self, topic: Uuid, balancer: Balancer) -> int:
        """How many partitions moved."""
        if balancer.start(self.readers[topic]) <= 1:
            return 0
        owners = self.owners[topic]
        # By owner, then by number: the last ones of an owner are the first to go.
        by_owner: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            by_owner.setdefault(owner, []).append(partition)
        moved = 0
        while not balancer.is_balanced():
            donor = balancer.next_most_loaded()
            while donor != NOBODY and not by_owner.get(donor):
                balancer.exclude_most_loaded()
                donor = balancer.next_most_loaded()
            if donor == NOBODY:
                break
            partition = by_owner[donor].pop()
            taker = balancer.next_least_loaded()
            if balancer.is_balanced():
                break
            self._give(topic, partition, taker)
            moved += 1
        return moved


def _signed(uuid: Uuid) -> tuple[int, int]:
    """Kafka compares ids as two signed numbers."""
    return int.from_bytes(uuid[:8], signed=True), int.from_bytes(uuid[8:], signed=True)
