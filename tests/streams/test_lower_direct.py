"""Small micro-batches that the driver works off itself: whoever has the state, the results are the test driver's.

No Spark and no broker: reading and writing are replaced, and what stands in for Spark's engine runs large micro-batches
with tasks of its own, from the state that it is given, and gives back.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millstream.streams import StreamsBuilder, Topology, function, hopping, tumbling, value
from millstream.streams.lower.direct import engine as direct
from millstream.streams.lower.direct import records as direct_records
from millstream.streams.lower.direct.eligible import runs_directly
from millstream.streams.lower.direct.engine import DirectEngine
from millstream.streams.lower.direct.partitions import DirectTasks
from millstream.streams.lower.native.engine import State
from millstream.streams.lower.native.supported import why_not
from millstream.streams.lower.sinking import Span
from millstream.streams.lower.subtopologies import subtopologies
from millstream.streams.settings import settings_of
from tests.streams.memory_topics import Line, Stored, cut_at_random, driven
from tests.streams.test_lower_tasks import random_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.spark.ranges import Range
    from millstream.streams.lower.tasks.partition import Out

SMALL = 6
APPLICATION = "app"
SEEDS = range(20)
NOBODY: Any = None


@dataclass
class Click:
    user: str
    cents: int = 7


class Lost(Exception):
    """The transaction is not committed."""


class Topics:
    """One partition of each topic; what a try writes counts when it was committed."""

    def __init__(self, topology: Topology) -> None:
        (self.part,) = subtopologies(topology.plan)
        assert why_not(topology.plan, self.part) is None
        assert runs_directly(topology.plan, self.part)
        self.plan = topology.plan
        self.spark = StandIn(self)
        settings = settings_of(APPLICATION, "nowhere:1", {"direct.records.max": SMALL})
        self.direct = DirectEngine(self.plan, self.part, settings, self.spark)  # type: ignore[arg-type]
        self.committed: defaultdict[str, list[Stored]] = defaultdict(list)
        self.records: list[Any] = []
        self.who: list[str] = []
        self._written: list[Out] = []
        self._fails = False
        self._end = 0
        self._batch_id = -1

    def run(self, lines: list[Line], *, fails: bool) -> None:
        """A micro-batch, which may have to be tried twice."""
        self._batch_id += 1
        self.records = [(*line, (), self._end + number) for number, line in enumerate(lines)]
        place = ("left", 0)
        span = Span({place: self._end}, {place: self._end + len(lines)}, {"left": "id"})
        self._end += len(lines)
        self._fails = fails
        try:
            self._try(span)
        except Lost:
            self._try(span)
        for out in self._written:
            self.committed[out.topic].append((out.key, out.value, out.timestamp_ms))

    def _try(self, span: Span) -> None:
        if self.direct.write(NOBODY, NOBODY, None, self._batch_id, span) is not None:
            self.who.append("driver")
            return
        self.who.append("spark")
        self.write(self.spark.output(self._batch_id))

    def write(self, out: list[Out], *_: object) -> list[dict[str, Any]]:
        self._written = out
        if self._fails:
            self._fails = False
            raise Lost
        return []


class StandIn:
    """In place of Spark's engine."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._tasks: DirectTasks | None = None
        self._tried: int | None = None
        self._ready_for = -1

    @property
    def is_fresh(self) -> bool:
        return self._tried is None

    def begin(self, _spark: object, _client: object, batch_id: int, _span: object) -> None:
        if self._tried is None or self._tried >= batch_id:
            self._hold(State({}, {}))
            self._restore()
        self._tried = self._ready_for = batch_id

    def _hold(self, state: State) -> None:
        self._tasks = DirectTasks(self._topics.plan, self._topics.part, APPLICATION, state)

    def _restore(self) -> None:
        assert self._tasks is not None
        task = self._tasks._task(0)
        for store in self._topics.part.logged:
            for key, content, time_ms in self._topics.committed[f"{APPLICATION}-{store.name}-changelog"]:
                task.stores[store.name].put_back(key or b"", content, time_ms)
        for key, content, _ in self._topics.committed[f"{APPLICATION}-tasks-changelog"]:
            task.put_back((key or b"")[4:], content)
        task.load_kept()

    def output(self, batch_id: int) -> list[Out]:
        if self._ready_for != batch_id:
            self.begin(None, None, batch_id, None)
        self._ready_for = -1
        assert self._tasks is not None
        return self._tasks.run({0: self._topics.records}, 0)

    def give(self, rows_max: int) -> State | None:
        assert self._tasks is not None
        if len(self._tasks) > rows_max:
            return None
        state, self._tasks, self._tried = self._tasks.state(), None, None
        return state

    def take(self, _spark: object, batch_id: int, state: State) -> None:
        self._hold(state)
        self._tried = self._ready_for = batch_id


def records(dice: random.Random) -> list[Line]:
    return [("left", key, content, at_ms) for _, key, content, at_ms in random_records(dice, 80)]


def counting() -> Topology:
    builder = StreamsBuilder(key=str, value=str)
    grouped = builder.stream("left").filter(value() != "c2").group_by_key()
    grouped.count().to_stream().to("counts")
    grouped.windowed_by(tumbling(10, grace_ms=15)).count().to_stream().to("windows")
    grouped.windowed_by(hopping(10, 3)).sum(function("length", value())).to_stream().to("hops")
    return builder.build()


@pytest.mark.parametrize("rows_max", [direct.ROWS_MAX, 4], ids=["state fits", "state often does not"])
def test_whoever_has_the_state_the_results_are_the_same(rows_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "PATIENCE", 1)
    monkeypatch.setattr(direct, "ROWS_MAX", rows_max)
    topology = counting()
    workers: set[str] = set()
    for seed in SEEDS:
        dice = random.Random(f"direct {seed}")
        cuts = cut_at_random(records(dice), dice, longest=2 * SMALL)
        topics = Topics(topology)
        monkeypatch.setattr(direct, "read_records", lambda *_, of=topics: {0: of.records})
        monkeypatch.setattr(direct, "write_records", topics.write)
        for cut in cuts:
            topics.run(cut, fails=dice.random() < 0.2)
        for topic in ("counts", "windows", "hops"):
            assert topics.committed[topic] == driven(topology, cuts, topic), f"seed {seed}, {topic}"
        workers.update(topics.who)
    assert workers == {"driver", "spark"}


def test_the_state_moves_when_there_is_reason_to(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = Topics(counting())
    monkeypatch.setattr(direct, "read_records", lambda *_: {0: topics.records})
    monkeypatch.setattr(direct, "write_records", topics.write)
    line: Line = ("left", b"a", b"a1", 5)
    for size in (1, 1, SMALL + 1, 1, 1, 1, 1, SMALL + 1):
        topics.run([line] * size, fails=False)
    assert topics.who == ["driver", "driver", "spark", "spark", "spark", "driver", "driver", "spark"]


def test_few_records_that_are_large_are_for_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state goes back to it, and the next try is longer in coming each time."""
    topics = Topics(counting())
    monkeypatch.setattr(
        direct, "read_records", lambda *_: None if len(topics.records[0][2]) > 2 else {0: topics.records}
    )
    monkeypatch.setattr(direct, "write_records", topics.write)
    small: Line = ("left", b"a", b"a1", 5)
    large: Line = ("left", b"a", b"a large one", 5)
    for line in (small, large, *[small] * 6, *[large] * 2, small):
        topics.run([line], fails=False)
    assert topics.who == ["driver", *["spark"] * 6, "driver", *["spark"] * 3]
    assert len(topics.committed["counts"]) == 11, "nothing is lost on the way"


def test_reading_ends_when_it_has_become_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def read_range(part: Range, *_: object) -> Iterator[pa.RecordBatch]:
        for offset in range(part.start, part.end):
            asked.append(offset)
            columns = [["in"], [part.partition], [offset], [b"k"], [b"v" * 1_000], [7_000], [None]]
            arrays = zip(columns, direct_records._COLUMNS, strict=True)
            yield pa.record_batch([pa.array(each, field.type) for each, field in arrays], direct_records._COLUMNS)

    monkeypatch.setattr(direct_records, "read_range", read_range)
    span = Span({("in", 0): 2}, {("in", 0): 5, ("in", 1): 5}, {"in": "id"})
    connection = {"bootstrap.servers": "nowhere:1"}
    found = direct_records.read_records(span, connection, 20_000)
    assert found is not None
    assert {index: [record[5] for record in each] for index, each in found.items()} == {0: [2, 3, 4], 1: [*range(5)]}
    asked.clear()
    assert direct_records.read_records(span, connection, 4_500) is None
    assert asked == [2, 3, 4, 0, 1], "what comes behind is not asked for"


def test_tables_that_are_read_from_topics_stay_with_spark() -> None:
    builder = StreamsBuilder(key=str, value=str)
    table = builder.table("right")
    builder.stream("left").join(table, lambda one, other: one + other, value=str).to("out")
    grouped = builder.stream("other").group_by_key().count(store="counts").filter(value() > 1, store="large")
    grouped.to_stream().to("many")
    topology = builder.build()
    assert [runs_directly(topology.plan, part) for part in subtopologies(topology.plan)] == [False, False]


def test_json_stays_with_spark() -> None:
    """The two read it with other eyes, and how many records come at once must not be seen in the results."""
    for kind, expected in ((str, True), (int, True), (dict, False), (Click, False)):
        builder = StreamsBuilder(key=str, value=kind)
        builder.stream("in").group_by_key().windowed_by(tumbling(10, grace_ms=0)).count().to_stream().to("out")
        plan = builder.build().plan
        assert [runs_directly(plan, part) for part in subtopologies(plan)] == [expected]
