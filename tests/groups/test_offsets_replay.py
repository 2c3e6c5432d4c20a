"""Replay gives the same offsets as running on, and both give what a naive reading of the log gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from millstream.groups.offsets.tombstones import tombstone
from millstream.protocol.errors import ErrorCode
from millstream.replicated import Decision
from tests.groups.offsets_scene import Scene, offsets_in, seen_in

Place = tuple[str, str, int]

_PLACES = st.sampled_from([("g", "orders", 0), ("g", "orders", 1), ("h", "orders", 0), ("h", "payments", 1)])
_OFFSETS = st.integers(0, 5)
_PRODUCERS = st.sampled_from([7, 8])
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), _PLACES, _OFFSETS),
        st.tuples(st.just("delete"), _PLACES),
        st.tuples(st.just("txn_commit"), _PLACES, _OFFSETS, _PRODUCERS),
        st.tuples(st.just("end"), _PRODUCERS, st.booleans()),
        st.tuples(st.just("expire")),
    ),
    max_size=25,
)


@dataclass
class Naive:
    """The rules of Kafka's coordinator in their plainest form: every offset remembers its place in the log."""

    clock: int = 0
    committed: dict[Place, tuple[int, int]] = field(default_factory=dict)
    pending: dict[tuple[int, Place], tuple[int, int]] = field(default_factory=dict)
    open: dict[tuple[int, Place], None] = field(default_factory=dict)

    def take(self, step: tuple[Any, ...]) -> None:
        self.clock += 1
        match step:
            case ("commit", place, offset):
                self.committed[place] = (offset, self.clock)
            case ("delete", place):
                self.committed.pop(place, None)
                for key in [key for key in self.open if key[1] == place]:
                    self.pending.pop(key, None)
                    del self.open[key]
            case ("txn_commit", place, offset, producer):
                self.pending[producer, place] = (offset, self.clock)
                self.open[producer, place] = None
            case ("end", producer, committed):
                for key in [key for key in self.open if key[0] == producer]:
                    del self.open[key]
                    offset, at = self.pending.pop(key)
                    if committed and at > self.committed.get(key[1], (0, -1))[1]:
                        self.committed[key[1]] = (offset, at)


def take(scene: Scene, step: tuple[Any, ...]) -> None:
    match step:
        case ("commit", (group, topic, partition), offset):
            assert scene.commit(offset, group=group, topic=topic, partition=partition) is ErrorCode.NONE
        case ("delete", (group, topic, partition)):
            scene.delete(group=group, topic=topic, partition=partition)
        case ("txn_commit", (group, topic, partition), offset, producer):
            scene.txn_commit(offset, group=group, topic=topic, partition=partition, producer_id=producer)
        case ("end", producer, committed):
            scene.end_transaction(commit=committed, producer_id=producer)
        case ("expire",):
            scene.run_expiry()


@given(steps=_STEPS)
def test_a_naive_reading_of_the_log_agrees(steps: list[tuple[Any, ...]]) -> None:
    scene, naive = Scene(), Naive()
    for step in steps:
        take(scene, step)
        naive.take(step)
    assert {place: value.offset for place, value in offsets_in(scene.machine).items()} == {
        place: offset for place, (offset, _) in naive.committed.items()
    }
    for _, (group, topic, partition) in naive.open:
        assert scene.fetch(group=group, topic=topic, partition=partition, stable=True)[1] is (
            ErrorCode.UNSTABLE_OFFSET_COMMIT
        )


@given(steps=_STEPS, crashes=st.sets(st.integers(0, 25)))
def test_replay_gives_what_running_on_gives(steps: list[tuple[Any, ...]], crashes: set[int]) -> None:
    steady, crashing = Scene(), Scene()
    for number, step in enumerate(steps):
        take(steady, step)
        take(crashing, step)
        if number in crashes:
            crashing.crash()
    assert seen_in(crashing.machine) == seen_in(steady.machine)
    assert seen_in(steady.replayed()) == seen_in(steady.machine)


def test_a_log_of_tombstones_alone_replays_to_nothing() -> None:  # KAFKA-17306
    compacted = Scene()
    compacted.journal.end_offset = 10
    compacted.carry_out(Decision(records=(tombstone("g", "orders", 0), tombstone("g", "orders", 1))))
    machine = compacted.replayed()
    assert seen_in(machine) == seen_in(Scene().machine)


def test_a_log_that_ends_in_a_gap_is_replayed_to_its_end() -> None:  # KAFKA-9065
    scene = Scene()
    scene.commit(1)
    scene.journal.end_offset += 50
    assert offsets_in(scene.replayed()) == offsets_in(scene.machine)
