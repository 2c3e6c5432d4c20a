"""Whether writer tasks ran once: what Spark's book of stages says, and what it cannot say, is told from it.

It takes the loss of an executor to see a stage that runs again (test_standalone.py); here the book is made up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkStageInfo
from pyspark.sql import Row

from millstream.spark.exactly_once_routing import speculates
from millstream.spark.exactly_once_sink import is_passing
from millstream.spark.exactly_once_stages import StageBook
from millstream.spark.exactly_once_task import TaskRefused
from millstream.spark.masters import local_cores

CLUSTERS = ["spark://host:7077", "yarn", "k8s://https://host", "local-cluster[2,1,1024]"]


@dataclass
class MadeUp:
    """A context of Spark's whose stages were run so often; it is its own JVM, bus, metrics and counter, too."""

    runs: dict[int, int]
    master: str = CLUSTERS[0]
    thrown_away: list[int] = field(default_factory=lambda: [0, 0])
    behind: bool = False

    def __post_init__(self) -> None:
        self._jsc = self

    def itself(self, *_: object) -> MadeUp:
        return self

    sc = listenerBus = metrics = metricRegistry = counter = statusTracker = itself  # noqa: N815

    def waitUntilEmpty(self, _within_ms: int) -> None:  # noqa: N802
        if self.behind:
            raise Py4JJavaError("the event queue is not empty", SimpleNamespace(_target_id="o1"))

    def getCount(self) -> int:  # noqa: N802
        return self.thrown_away.pop(0)

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802
        return SparkStageInfo(stage, self.runs[stage] - 1, "", 1, 0, 1, 0) if stage in self.runs else None


def judge(made: Any, *stages: int) -> None:
    StageBook(made).refuse_what_ran_again([Row(stage=stage) for stage in stages])


@pytest.mark.parametrize("master", CLUSTERS)
def test_a_stage_that_ran_again_is_refused(master: str) -> None:
    judge(MadeUp({3: 1, 4: 1, 7: 2}, master), 3, 4)
    with pytest.raises(TaskRefused, match="stage 7 was run 2 times") as refused:
        judge(MadeUp({3: 1, 4: 1, 7: 2}, master), 3, 7)
    assert is_passing(refused.value), "the batch is done again"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (MadeUp({4: 1}), r"Spark has forgotten stage 3 \(spark.ui.retainedStages"),
        (MadeUp({3: 1}, behind=True), "listeners are more than 60000 ms behind"),
        (MadeUp({3: 1}, thrown_away=[2, 5]), "Spark has thrown away events"),
    ],
    ids=["forgotten", "behind", "thrown away"],
)
def test_what_cannot_be_known_is_refused_too(made: MadeUp, said: str) -> None:
    with pytest.raises(TaskRefused, match=said) as refused:
        judge(made, 3)
    assert is_passing(refused.value), "the batch is done again"


def test_events_that_were_thrown_away_before_do_not_matter() -> None:
    judge(MadeUp({3: 1}, thrown_away=[2, 2]), 3)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]", "local[*,3]"])
def test_in_one_process_nothing_is_looked_up(master: str) -> None:
    judge(MadeUp({}, master, thrown_away=[]), 3)


def test_only_masters_of_this_process_are_local() -> None:
    assert [local_cores(master) for master in ("local", "local[2]", "local[3,2]")] == [1, 2, 3]
    assert (local_cores("local[*]") or 0) >= 1
    assert [local_cores(master) for master in (*CLUSTERS, "", None)] == [None] * 6


@pytest.mark.parametrize(
    ("said", "meant"), [("true", True), ("TRUE", True), (" True ", True), ("false", False), (None, False)]
)
def test_speculation_is_recognised_however_it_is_spelt(said: str | None, meant: bool) -> None:
    settings = {} if said is None else {"spark.speculation": said}
    made: Any = SimpleNamespace(getConf=lambda: settings)
    assert speculates(made) is meant
