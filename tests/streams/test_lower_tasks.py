"""The engine for Python functions means what the test driver means, however the records are cut into micro-batches and
whichever worker has which part of the state. No Spark here: test_spark_* has it."""

from __future__ import annotations

import random

import pytest

from millstream.streams import StreamsBuilder, Topology
from millstream.streams.lower.patterns import with_topics
from millstream.streams.lower.subtopologies import subtopologies
from tests.streams.memory_topics import Line, MemoryTopics, Stored, cut_at_random, driven
from tests.streams.reference_cases import CASES

SEEDS = range(20)


def topology_of(case: str) -> Topology:
    builder = StreamsBuilder(key=str, value=str)
    CASES[case](builder)
    return Topology(with_topics(builder.build().plan, ("left", "right", "third")))


def random_records(dice: random.Random, count: int) -> list[Line]:
    """Late ones, and such without key or value."""
    lines: list[Line] = []
    now_ms = 0
    nulls = dice.choice((0.0, 0.1))
    late_ms = dice.choice((0, 5, 30))
    for _ in range(count):
        now_ms += dice.choice((0, 0, 1, 1, 2, 5)) if dice.random() < 0.97 else dice.randint(20, 60)
        key = None if dice.random() < nulls / 2 else dice.choice("abc").encode()
        value = None if dice.random() < nulls else (dice.choice("abc") + dice.choice("12")).encode()
        at_ms = max(0, now_ms - (dice.randint(0, late_ms) if dice.random() < 0.3 else 0))
        lines.append((dice.choice(("left", "right", "third")), key, value, at_ms))
    return lines


@pytest.mark.parametrize("case", CASES)
def test_every_cut_gives_what_the_driver_gives(case: str) -> None:
    topology = topology_of(case)
    parts = subtopologies(topology.plan)
    for seed in SEEDS:
        dice = random.Random(f"{case} {seed}")
        lines = [line for line in random_records(dice, 40) if line[0] in _read(topology)]
        # Where one sub-topology feeds another, the driver finishes each record before the next: so do cuts of one.
        cuts = cut_at_random(lines, dice, longest=12 if len(parts) == 1 else 1)
        topics = MemoryTopics(topology, dice, loses_tasks=True)
        for cut in cuts:
            topics.feed(cut)
            topics.work_off()
        found, expected = topics.topics.get("out", []), driven(topology, cuts, "out")
        if len(parts) > 1:
            # Two of them may write to the topic, and nobody says which is first.
            found, expected = sorted(found, key=repr), sorted(expected, key=repr)
        assert found == expected, f"seed {seed}"


CHAINED = [case for case in CASES if len(subtopologies(topology_of(case).plan)) > 1]
# A record that goes through a topic before it meets a table, or another branch of its stream, meets what is there when
# it arrives: that is up to timing, here as in Kafka Streams.
UP_TO_TIMING = ("branches-joined", "stream-table-null-keys", "stream-table-left-null-keys", "repartition-left-join")


@pytest.mark.parametrize("case", [case for case in CHAINED if case not in UP_TO_TIMING])
def test_sub_topologies_that_feed_each_other_come_to_the_same(case: str) -> None:
    """Micro-batches of many records, so that one is behind the other. Of a foreign-key join it is the last value of
    each key: answers that are overtaken do not count, and a group that nobody stays in for long is not seen."""
    topology = topology_of(case)
    for seed in SEEDS:
        dice = random.Random(f"{case} chained {seed}")
        lines = [line for line in random_records(dice, 40) if line[0] in _read(topology)]
        cuts = cut_at_random(lines, dice, longest=12)
        topics = MemoryTopics(topology, dice, loses_tasks=True)
        for cut in cuts:
            topics.feed(cut)
            topics.work_off()
        found, expected = topics.topics.get("out", []), driven(topology, cuts, "out")
        if case.startswith("foreign-key"):
            assert _rows(found) == _rows(expected), f"seed {seed}"
        else:
            assert sorted(found, key=repr) == sorted(expected, key=repr), f"seed {seed}"


def _rows(records: list[Stored]) -> dict[bytes | None, bytes]:
    """The last value of each key; a count of nothing is none."""
    last = {key: value for key, value, _ in records}
    return {key: value for key, value in last.items() if value not in (None, bytes(8))}


def _read(topology: Topology) -> set[str]:
    return {topic for part in subtopologies(topology.plan) for topic in part.topics} | {
        node.topic for node in topology.plan.nodes if hasattr(node, "topic") and isinstance(node.topic, str)
    }
