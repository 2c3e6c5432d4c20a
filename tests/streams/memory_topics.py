"""The engine for Python functions without Spark and without a broker: topics are lists, micro-batches are cut by dice.

Tasks are lost at random, and made again from the changelogs, as a worker on another machine would.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from millstream.streams import Topology, TopologyTestDriver
from millstream.streams.lower.subtopologies import SubTopology, global_tables, subtopologies
from millstream.streams.lower.tasks.partition import PartitionTask
from millstream.streams.lower.tasks.restoring import Restorable, catch_up, stores_by_topic
from millstream.streams.lower.topics import tasks_topic

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

APPLICATION = "app"
# topic, key, value, time
Line = tuple[str, bytes | None, bytes | None, int]
Stored = tuple[bytes | None, bytes | None, int]


class MemoryTopics:
    """Topics of one partition, and the tasks that read and write them."""

    def __init__(self, topology: Topology, dice: random.Random, *, loses_tasks: bool) -> None:
        self._plan = topology.plan
        self._parts = subtopologies(topology.plan)
        self._dice = dice
        self._loses_tasks = loses_tasks
        self._globals = tuple(node.topic for node in global_tables(topology.plan))
        self._read_to: dict[tuple[int, str], int] = {}
        self._tasks: dict[int, list[PartitionTask]] = {part.number: [] for part in self._parts}
        self.topics: dict[str, list[Stored]] = {}

    def feed(self, lines: list[Line]) -> None:
        for topic, key, value, time_ms in lines:
            self.topics.setdefault(topic, []).append((key, value, time_ms))

    def work_off(self, *, last_first: bool = False) -> None:
        """Micro-batches until nothing is new anywhere; sub-topologies take turns, in this order or the other."""
        parts = self._parts[::-1] if last_first else self._parts
        while any([self._micro_batch(part) for part in parts]):  # noqa: C419  # each has its turn
            pass

    def _micro_batch(self, part: SubTopology) -> bool:
        starts: dict[str, int] = {}
        records = []
        for topic in part.topics:
            name = part.full_name(topic, APPLICATION)
            start = starts[name] = self._read_to.get((part.number, name), 0)
            for offset, (key, value, time_ms) in enumerate(self.topics.get(name, [])[start:], start):
                records.append((name, key, value, time_ms, (), offset))
            self._read_to[part.number, name] = len(self.topics.get(name, []))
        if not records:
            return False
        records.sort(key=lambda record: (record[0], record[5]))
        task = self._task(part, starts)
        for out in task.run(records, 0):
            self.topics.setdefault(out.topic, []).append((out.key, out.value, out.timestamp_ms))
        return True

    def _task(self, part: SubTopology, starts: dict[str, int]) -> PartitionTask:
        """One of the workers' tasks: one may be behind, and none may be left."""
        workers = self._tasks[part.number]
        if self._loses_tasks and workers and self._dice.random() < 0.3:
            del workers[self._dice.randrange(len(workers))]
        if not workers or (self._loses_tasks and len(workers) < 2 and self._dice.random() < 0.5):
            plan, own = pickle.loads(cloudpickle.dumps((self._plan, part)))
            workers.append(PartitionTask(plan, own, APPLICATION, 0, 0))
        task = self._dice.choice(workers)
        stores = stores_by_topic(part, APPLICATION)
        ends = {(topic, 0): len(self.topics.get(topic, [])) for topic in (*stores, tasks_topic(APPLICATION))}
        ends.update({(topic, 0): starts[topic] for topic, _ in part.table_stores})
        ends.update({(topic, 0): len(self.topics.get(topic, [])) for topic in self._globals})
        state = Restorable(stores, tasks_topic(APPLICATION), self._globals, ends, {})
        catch_up(task, part.number, 0, state, self._read)
        return task

    def _read(self, topic: str, _partition: int, start: int, end: int) -> Iterator[Stored]:
        yield from self.topics.get(topic, [])[start:end]


def driven(topology: Topology, cuts: list[list[Line]], output: str) -> list[Stored]:
    """What the test driver writes to a topic if it gets the records cut by cut, each cut's oldest first as the engines
    do."""
    return driven_everywhere(topology, cuts).get(output, [])


def driven_everywhere(topology: Topology, cuts: list[list[Line]]) -> dict[str, list[Stored]]:
    """The same of all topics."""
    reads_globally = {node.topic for node in global_tables(topology.plan)}
    with TopologyTestDriver(topology) as driver:
        task: Any = driver._task
        for cut in cuts:
            for topic, key, value, time_ms in cut:
                if topic in reads_globally:
                    driver.pipe_raw(topic, key, value, time_ms)
            for topic in sorted({topic for topic, *_ in cut}):
                for other, key, value, time_ms in cut:
                    if other == topic and topic in task.handlers and topic not in reads_globally:
                        task.enqueue(topic, key, value, time_ms, ())
            task.run()
        return {
            topic: [(key, value, time_ms) for key, value, time_ms, _ in written]
            for topic, written in driver._outputs.items()
        }


def cut_at_random(lines: list[Line], dice: random.Random, *, longest: int) -> list[list[Line]]:
    """The records in order, in pieces."""
    cuts, at = [], 0
    while at < len(lines):
        size = dice.randint(1, longest)
        cuts.append(lines[at : at + size])
        at += size
    return cuts
