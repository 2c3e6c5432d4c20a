"""Where new replicas go: striped over racks, and over the brokers inside each rack.

The idea is that of Kafka's StripedReplicaPlacer. Racks stand in a shuffled ring, and each rack's brokers in a shuffled
ring of their own. A partition takes its replicas by walking the ring of racks, one broker per rack and turn; the next
partition starts one rack further, and every rack that gave a broker starts one broker further. So the replicas of a
partition land in as many racks as there are, leaders and replicas spread evenly, and no state outlives the call.

After as many partitions as there are active brokers the same lists would come again, and what a broker led would all go
to one other when it dies. So all rings are shuffled then; each goes on where it stood, so that counts stay even.

The first replica, the preferred leader, is always an active broker. For the others racks come before liveliness: a
rack whose brokers are all fenced still gets its share, since they will be back and the placement stays. Brokers
without a rack form one rack of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.metadata.randomness import Randomness, shuffle
from millstream.protocol.errors import InvalidReplicationFactor

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Candidate:
    """A broker that could hold a replica."""

    broker_id: int
    rack: str | None = None
    fenced: bool = False


def place_replicas(
    candidates: Iterable[Candidate], partition_count: int, replication_factor: int, random: Randomness
) -> list[list[int]]:
    """The replicas of `partition_count` new partitions, each list led by its preferred leader."""
    brokers = sorted(candidates, key=lambda candidate: candidate.broker_id)
    if replication_factor <= 0:
        raise InvalidReplicationFactor(f"The replication factor must be above 0, and not {replication_factor}.")
    if all(broker.fenced for broker in brokers):
        raise InvalidReplicationFactor("No broker is active: all that are registered are fenced.")
    if replication_factor > len(brokers):
        raise InvalidReplicationFactor(
            f"A replication factor of {replication_factor} needs as many brokers; {len(brokers)} are registered."
        )
    active = sum(not broker.fenced for broker in brokers)
    racks = _ring_of_racks(brokers, random)
    first = random.below(len(racks))
    placed = []
    since_shuffled = 0
    for turn in range(partition_count):
        # One active broker leads everything; fenced ones that follow it take turns best without being shuffled.
        if since_shuffled == active > 1:
            _shuffle_again(racks, random)
            since_shuffled = 0
        start = (first + turn) % len(racks)
        placed.append(_place_partition(racks[start:] + racks[:start], replication_factor))
        since_shuffled += 1
    return placed


class _Ring:
    """A rack's brokers of one kind. Each partition that takes from it begins one broker further."""

    __slots__ = ("_brokers", "_start", "_taken")

    def __init__(self, brokers: list[int], random: Randomness) -> None:
        self._brokers = brokers
        self.shuffle(random)
        self._start = random.below(len(brokers)) if brokers else 0
        self._taken = 0

    def shuffle(self, random: Randomness) -> None:
        shuffle(self._brokers, random)

    def take(self) -> int | None:
        """The next broker that this partition does not have yet."""
        if self._taken == len(self._brokers):
            return None
        broker = self._brokers[(self._start + self._taken) % len(self._brokers)]
        self._taken += 1
        return broker

    def next_partition(self) -> None:
        if self._taken:
            self._start += 1
            self._taken = 0


@dataclass(frozen=True, slots=True)
class _Rack:
    active: _Ring
    fenced: _Ring

    def take(self) -> int | None:
        broker = self.active.take()
        return self.fenced.take() if broker is None else broker


def _ring_of_racks(brokers: list[Candidate], random: Randomness) -> list[_Rack]:
    by_rack: dict[str | None, list[Candidate]] = {}
    for broker in brokers:
        by_rack.setdefault(broker.rack, []).append(broker)
    racks = [
        _Rack(
            active=_Ring([member.broker_id for member in members if not member.fenced], random),
            fenced=_Ring([member.broker_id for member in members if member.fenced], random),
        )
        for members in by_rack.values()
    ]
    shuffle(racks, random)
    return racks


def _shuffle_again(racks: list[_Rack], random: Randomness) -> None:
    shuffle(racks, random)
    for rack in racks:
        rack.active.shuffle(random)
        rack.fenced.shuffle(random)


def _place_partition(racks: list[_Rack], replication_factor: int) -> list[int]:
    replicas: list[int] = []
    leading = -1
    while not replicas:
        # Some rack has an active broker: it was checked before.
        leading += 1
        leader = racks[leading].active.take()
        if leader is not None:
            replicas.append(leader)
    turn = leading + 1
    while len(replicas) < replication_factor:
        broker = racks[turn % len(racks)].take()
        if broker is not None:
            replicas.append(broker)
        turn += 1
    for rack in racks:
        rack.active.next_partition()
        rack.fenced.next_partition()
    return replicas
