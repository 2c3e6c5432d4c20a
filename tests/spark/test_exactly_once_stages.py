"""Whether writer tasks ran once: what Spark's book of stages says, and what it cannot say, is told from it.

It takes the loss of an executor to see a stage that runs again (test_standalone.py); here the book is made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import Row

from millstream.spark.exactly_once_routing import speculates
from millstream.spark.exactly_once_sink import is_passing
from millstream.spark.exactly_once_stages import refuse_what_ran_again
from millstream.spark.exactly_once_task import TaskRefused
from millstream.spark.masters import local_cores

CLUSTERS = ["spark://host:7077", "yarn", "k8s://https://host", "local-cluster[2,1,1024]"]


@dataclass
class MadeUp:
    """A context of Spark's with the last attempts of its stages, as they are seen one look after the other."""

    seen: dict[int, list[tuple[int, str]]]
    master: str = CLUSTERS[0]

    def __post_init__(self) -> None:
        self._jsc = self

    def itself(self) -> MadeUp:
        return self

    sc = statusStore = itself  # noqa: N815

    def lastStageAttempt(self, stage: int) -> Any:  # noqa: N802
        if stage not in self.seen:
            raise Py4JJavaError("no stage with this id", SimpleNamespace(_target_id="o1"))
        looks = self.seen[stage]
        number, status = looks.pop(0) if len(looks) > 1 else looks[0]
        return SimpleNamespace(attemptId=lambda: number, status=lambda: SimpleNamespace(toString=lambda: status))


def judge(made: Any, *stages: int) -> None:
    refuse_what_ran_again(made, [Row(stage=stage) for stage in stages], within_s=0.1)


@pytest.mark.parametrize("master", CLUSTERS)
@pytest.mark.parametrize("again", [(1, "ACTIVE"), (1, "COMPLETE"), (0, "FAILED")])
def test_a_stage_that_ran_again_is_refused(master: str, again: tuple[int, str]) -> None:
    stages = {3: [(0, "COMPLETE")], 4: [(0, "COMPLETE")], 7: [again]}
    judge(MadeUp(stages, master), 3, 4)
    with pytest.raises(TaskRefused, match="stage 7 was run more than once") as refused:
        judge(MadeUp(stages, master), 3, 7)
    assert is_passing(refused.value), "the batch is done again"


def test_news_that_come_late_are_waited_for() -> None:
    judge(MadeUp({3: [(0, "PENDING"), (0, "ACTIVE"), (0, "COMPLETE")]}), 3)
    with pytest.raises(TaskRefused, match="more than once"):
        judge(MadeUp({3: [(0, "ACTIVE"), (1, "ACTIVE")]}), 3)


@pytest.mark.parametrize("seen", [{}, {3: [(0, "ACTIVE")]}], ids=["forgotten", "never ends"])
def test_what_cannot_be_known_is_refused_too(seen: dict[int, list[tuple[int, str]]]) -> None:
    with pytest.raises(TaskRefused, match="book of stages has no end of it") as refused:
        judge(MadeUp(seen), 3)
    assert is_passing(refused.value), "the batch is done again"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]", "local[*,3]"])
def test_in_one_process_nothing_is_looked_up(master: str) -> None:
    judge(MadeUp({}, master), 3)


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
