"""Where replicas go when an operator moves them: plans, made from what the cluster says of itself.

A plan changes as little as it can. To drain a broker, each of its replicas goes to the broker that has the fewest, of
those that have no copy of the partition; one in the leaving broker's rack is preferred, so that copies stay in as
many racks as they were. A spread over given brokers starts each partition one broker further, as a new topic does, and
takes its followers from as many racks as there are; each round takes other followers, so that a lost broker's
partitions go to many.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.cli.declare import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Place = tuple[str, int]
    Replicas = tuple[int, ...]


def plan_drain(
    assigned: Mapping[Place, Replicas], broker_id: int, racks: Mapping[int, str | None]
) -> dict[Place, Replicas]:
    """New replicas for every partition that has one on the broker; `racks` names the brokers that are there."""
    counts = dict.fromkeys((each for each in racks if each != broker_id), 0)
    for replicas in assigned.values():
        for each in replicas:
            if each in counts:
                counts[each] += 1
    plan: dict[Place, Replicas] = {}
    for place, replicas in assigned.items():
        if broker_id not in replicas:
            continue
        free = [each for each in counts if each not in replicas]
        if not free:
            topic, index = place
            raise UsageError(
                f"{topic}-{index} has a replica on every broker: give it fewer replicas, or the cluster another broker"
            )
        used = {racks.get(each) for each in replicas if each != broker_id}
        heir = min(
            free,
            key=lambda each: (racks[each] in used, racks[each] != racks.get(broker_id), counts[each], each),
        )
        counts[heir] += 1
        plan[place] = tuple(heir if each == broker_id else each for each in replicas)
    return plan


def plan_spread(
    places: Iterable[Place], racks: Mapping[int, str | None], replicas: int, *, first_turn: int = 0
) -> dict[Place, Replicas]:
    """Each partition on `replicas` of the brokers that `racks` names, the next one starting one broker further."""
    if replicas > len(racks):
        raise UsageError(f"{replicas} replicas need as many brokers; there are {len(racks)}")
    ring = _rack_by_rack(racks)
    plan: dict[Place, Replicas] = {}
    for turn, place in enumerate(places, first_turn):
        start = turn % len(ring)
        leader, *others = ring[start:] + ring[:start]
        shift = turn // len(ring) % max(len(others), 1)
        plan[place] = _in_many_racks(leader, others[shift:] + others[:shift], racks, replicas)
    return plan


def _rack_by_rack(racks: Mapping[int, str | None]) -> list[int]:
    """One broker of each rack, then the next of each: neighbours are in different racks where that can be."""
    seen: dict[str | None, int] = {}
    rounds: dict[int, int] = {}
    for broker_id, rack in racks.items():
        rounds[broker_id] = seen[rack] = seen.get(rack, -1) + 1
    return sorted(racks, key=rounds.__getitem__)


def _in_many_racks(leader: int, others: Sequence[int], racks: Mapping[int, str | None], replicas: int) -> Replicas:
    """The leader and the first of the others, those before them whose rack has fewer copies."""
    chosen, free = [leader], list(others)
    while len(chosen) < replicas:
        copies = Counter(racks[each] for each in chosen)
        # min() takes the first of equals: the order of the ring holds inside a rack and between racks.
        follower = min(free, key=lambda each: copies[racks[each]])  # used at once
        chosen.append(follower)
        free.remove(follower)
    return tuple(chosen)
