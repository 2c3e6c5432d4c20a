"""Bugs planted into the real cluster: what the pure worlds cannot show, in storage, drivers and coordinators."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.broker import metadata_log
from millstream.broker.controller_node import ControllerNode
from millstream.broker.handlers import produce
from millstream.broker.partition import Partition
from millstream.log.compaction_keys import NewestOffsets, fold
from millstream.log.directory import LogDirectory
from millstream.log.log import Log
from millstream.log.producers import ProducerStates
from millstream.protocol.uuid import METADATA_TOPIC_ID
from millstream.testing.checking import Kind
from millstream.testing.replica_invariants import IN_SYNC_HOLD
from millstream.testing.simulation import Plan, simulate
from millstream.transactions import ending
from tests.sim.planting import Plant, must_be_found, replaces

HARSH = ("kill", "kill-some", "isolate", "isolate-from-nodes", "one-way", "pair", "pause", "power")


def run(work: tuple[str, ...], faults: tuple[str, ...] = HARSH, seconds: float = 25, **settings: str) -> Any:
    """Seeds of a small simulation that raise what they find."""

    def one(seed: int) -> None:
        report = simulate(
            Plan(seed=seed, seconds=seconds, faults=faults, work=work, settings=settings, layout="combined")
        )
        if report.violation is not None:
            raise report.violation

    return one


WRITE = ("write", "read")
RIGHT_OPEN = LogDirectory.open_or_create
RIGHT_MARKERS = ending._markers_of
RIGHT_TARGETS = Log.sync_targets


async def _at_once(*_: Any) -> None:
    """Nothing is waited for."""


def _opens_with_everything_committed(self: LogDirectory, *arguments: Any) -> Log:
    log = RIGHT_OPEN(self, *arguments)
    log.advance_high_watermark(log.end_offset)
    return log


def _syncs_no_partition(self: Log) -> list[Any]:
    targets = RIGHT_TARGETS(self)
    return targets if self.topic_id == METADATA_TOPIC_ID else []


def _commits_whatever_was_asked(prepared: Any) -> Any:
    return RIGHT_MARKERS(prepared)._replace(committed=True)


def _replaces_the_newest_itself(self: NewestOffsets, key: bytes, offset: int) -> bool:
    return self._offsets.get(fold(key), -1) >= offset


CUT_OFF = ("isolate-from-nodes", "one-way", "split")
SYNCED = {"millstream.acks.fsync": "true"}

PLANTS = [
    (
        replaces(
            "acknowledged before the high watermark",
            Partition,
            "is_committed",
            lambda *_: True,
            rule=Kind.TWO_VALUES_AT_ONE_OFFSET,
            seeds=3,
        ),
        run(WRITE),
    ),
    (
        replaces(
            "a start takes all it finds for committed",
            LogDirectory,
            "open_or_create",
            _opens_with_everything_committed,
            rule="a follower knows no higher mark than its leaders",
            seeds=15,
        ),
        run(WRITE),
    ),
    (
        replaces(
            "the controller answers before the commit",
            ControllerNode,
            "_commit_of",
            _at_once,
            rule="what the controller promised holds",
            seeds=12,
        ),
        run(("administrate",), CUT_OFF, 40),
    ),
    (
        replaces(
            "the metadata log is not synced",
            metadata_log,
            "_sync_all",
            lambda _: None,
            rule="what the quorum committed stays",
            seeds=6,
        ),
        run(("administrate", "write"), ("blackout",), **SYNCED),
    ),
    (
        replaces(
            "acknowledged before it is on disk",
            Log,
            "sync_targets",
            _syncs_no_partition,
            rule=IN_SYNC_HOLD,
            seeds=3,
        ),
        run(WRITE, ("blackout",), **SYNCED),
    ),
    (
        replaces(
            "a copy of a batch is written again",
            ProducerStates,
            "check",
            lambda *_: None,
            rule=Kind.ONE_VALUE_AT_TWO_OFFSETS,
            seeds=6,
        ),
        run(WRITE),
    ),
    (
        replaces(
            "a batch that waits stays in shared memory",
            produce,
            "_own_records",
            lambda _: None,
            rule="what arrives is what was sent",
            seeds=2,
        ),
        run(("transact", "read"), ()),
    ),
    (
        replaces(
            "aborted transactions are not told",
            Log,
            "aborted_transactions",
            lambda *_: [],
            rule=Kind.READ_OF_ABORTED_WRITE,
            seeds=2,
        ),
        run(("transact", "read"), ()),
    ),
    (
        replaces(
            "transactions are read before they end",
            Log,
            "last_stable_offset",
            property(lambda self: self.high_watermark),
            rule=Kind.READ_OF_ABORTED_WRITE,
            seeds=4,
        ),
        run(("transact", "read"), ()),
    ),
    (
        replaces(
            "the markers of aborted transactions say commit",
            ending,
            "_markers_of",
            _commits_whatever_was_asked,
            rule=Kind.READ_OF_ABORTED_WRITE,
            seeds=2,
        ),
        run(("transact", "read"), (), 10),
    ),
    (
        replaces(
            "compaction drops the newest value of a key",
            NewestOffsets,
            "replaced",
            _replaces_the_newest_itself,
            rule=Kind.NEWEST_VALUE_LOST,
            seeds=2,
        ),
        run(("write", "compact"), (), 20),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "simulation"), PLANTS, ids=lambda each: str(each) if isinstance(each, Plant) else "")
def test_a_planted_bug_is_found(plant: Plant, simulation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.plant(monkeypatch)
    must_be_found(plant, simulation)
