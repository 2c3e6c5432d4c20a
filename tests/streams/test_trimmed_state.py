"""A trimmed changelog still holds all that a task needs which is begun anew, however far its topics are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.streams import StreamsBuilder, tumbling, within
from millstream.streams.lower.subtopologies import subtopologies
from millstream.streams.lower.tasks.partition import PartitionTask

if TYPE_CHECKING:
    from millstream.streams.lower.tasks.partition import Out
    from millstream.streams.plan.plan import Plan

DAY_MS = 86_400_000
LONG_AGO_MS = 1_000 * DAY_MS
Fed = tuple[str, bytes, bytes, int]


def builder() -> StreamsBuilder:
    return StreamsBuilder(key=str, value=str)


def joined() -> Plan:
    build = builder()
    windows = within(10_000, grace_ms=0)
    build.stream("a").join(build.stream("b"), lambda a, b: f"{a}+{b}", windows=windows, value=str).to("out")
    return build.build().plan


def joined_and_enriched() -> Plan:
    build = builder()
    windows = within(10_000, grace_ms=0)
    pairs = build.stream("a").join(build.stream("b"), lambda a, b: f"{a}+{b}", windows=windows, value=str)
    pairs.left_join(build.table("c"), lambda pair, _: pair, value=str).to("out")
    return build.build().plan


def aggregated() -> Plan:
    build = builder()
    counted = build.stream("a").filter(lambda _, value: value != "tick").group_by_key()
    windows = counted.windowed_by(tumbling(60_000, grace_ms=0))
    all_of = windows.aggregate(str, lambda _, value, had: None if value == "del" else (had or "") + value, value=str)
    all_of.to_stream().to("out")
    return build.build().plan


class Work:
    """One partition of a plan; its changelogs, and what a task makes of them that has nothing else."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._part = subtopologies(plan)[0]
        self._log: list[Out] = []
        self._offset = 0
        self.task = self._new_task()

    def _new_task(self) -> PartitionTask:
        return PartitionTask(self._plan, self._part, "app", 0, 0)

    def feed(self, task: PartitionTask, *fed: Fed) -> list[bytes | None]:
        rows = []
        for topic, key, value, time_ms in fed:
            rows.append((topic, key, value, LONG_AGO_MS + time_ms, (), self._offset))
            self._offset += 1
        outs = task.run(rows, 0)
        self._log += (out for out in outs if "changelog" in out.topic)
        return [out.value for out in outs if out.topic == "out"]

    def begun_anew(self) -> PartitionTask:
        task = self._new_task()
        for store in self._part.logged:
            rows = [out for out in self._log if out.topic == self._part.changelog(store, "app")]
            if rows and store.changelog_retention_ms is not None:
                young_ms = max(out.timestamp_ms for out in rows) - store.changelog_retention_ms
                rows = rows[next(at for at, out in enumerate(rows) if out.timestamp_ms >= young_ms) :]
            for out in rows:
                assert out.key is not None
                task.stores[store.name].put_back(out.key, out.value, out.timestamp_ms)
        return task


CASES: dict[str, tuple[Plan, list[Fed], Fed, list[bytes]]] = {
    "one side of a join is days ahead": (
        joined(),
        [("a", b"k", b"A1", 0), ("b", b"z", b"B0", 2 * DAY_MS), ("a", b"x", b"A2", 1)],
        ("b", b"k", b"B1", 5),
        [b"A1+B1"],
    ),
    "a table is days ahead": (
        joined_and_enriched(),
        [("a", b"k", b"A1", 0), ("c", b"k", b"name", 2 * DAY_MS), ("a", b"x", b"A2", 1)],
        ("b", b"k", b"B1", 5),
        [b"A1+B1"],
    ),
    "records that are left out are days ahead of a tombstone": (
        aggregated(),
        [("a", b"k", b"A1", 0), ("a", b"z", b"tick", 2 * DAY_MS), ("a", b"x", b"1", 1), ("a", b"x", b"del", 2)],
        ("a", b"k", b"A2", 5),
        [b"A1A2"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_open_survives_trimming(case: str) -> None:
    plan, fed, last, expected = CASES[case]
    work = Work(plan)
    for each in fed:
        work.feed(work.task, each)
    task = work.begun_anew()
    assert work.feed(task, last) == expected == work.feed(work.task, last)


def test_what_has_closed_is_trimmed() -> None:
    work = Work(joined())
    work.feed(work.task, ("a", b"k", b"A1", 0), ("a", b"k", b"A2", 2 * DAY_MS))
    task = work.begun_anew()
    (name,) = (store.name for store in work._part.logged if "THIS" in store.name)
    assert [value for _, value in task.stores[name].fetch("k", 0, 2**62)] == ["A2"]
