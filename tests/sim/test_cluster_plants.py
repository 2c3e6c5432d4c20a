"""Bugs planted into the real cluster: what the pure worlds cannot show, in storage, drivers and coordinators."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.broker import metadata_log
from millstream.broker.controller_node import ControllerNode
from millstream.broker.handlers import produce
from millstream.broker.partition import Partition
from millstream.log.directory import LogDirectory
from millstream.log.log import Log
from millstream.log.producers import ProducerStates
from millstream.testing.simulation import Plan, simulate
from millstream.testing.violations import Violation
from tests.sim.planting import Plant, must_be_found, replaces

HARSH = ("kill", "kill-some", "isolate", "isolate-from-nodes", "one-way", "pair", "pause", "power")


def run(work: tuple[str, ...], faults: tuple[str, ...] = HARSH, seconds: float = 25, **settings: str) -> Any:
    """Seeds of a small simulation that raise what they find."""

    def one(seed: int) -> None:
        report = simulate(
            Plan(seed=seed, seconds=seconds, faults=faults, work=work, settings=settings, layout="combined")
        )
        if report.violation is not None:
            raise Violation(type(report.violation).__name__, str(report.violation))

    return one


WRITE = ("write", "read")
RIGHT_OPEN = LogDirectory.open_or_create


async def _at_once(*_: Any) -> None:
    """Nothing is waited for."""


def _opens_with_everything_committed(self: LogDirectory, *arguments: Any) -> Log:
    log = RIGHT_OPEN(self, *arguments)
    log.advance_high_watermark(log.end_offset)
    return log


CUT_OFF = ("isolate-from-nodes", "one-way", "split")
SYNCED = {"millstream.acks.fsync": "true"}

PLANTS = [
    (
        replaces("acknowledged before the high watermark", Partition, "is_committed", lambda *_: True, seeds=3),
        run(WRITE),
    ),
    (
        replaces(
            "a start takes all it finds for committed",
            LogDirectory,
            "open_or_create",
            _opens_with_everything_committed,
            seeds=15,
        ),
        run(WRITE),
    ),
    (
        replaces("the controller answers before the commit", ControllerNode, "_commit_of", _at_once, seeds=12),
        run(("administrate",), CUT_OFF, 40),
    ),
    (
        replaces("the metadata log is not synced", metadata_log, "_sync_all", lambda _: None, seeds=6),
        run(("administrate", "write"), ("blackout",), **SYNCED),
    ),
    (
        replaces("acknowledged before it is on disk", Log, "sync_targets", lambda _: [], seeds=6),
        run(WRITE, ("blackout",), **SYNCED),
    ),
    (
        replaces("a copy of a batch is written again", ProducerStates, "check", lambda *_: None, seeds=6),
        run(WRITE),
    ),
    (
        replaces("a batch that waits stays in shared memory", produce, "_own_records", lambda _: None, seeds=2),
        run(("transact", "read"), ()),
    ),
    (
        replaces("aborted transactions are not told", Log, "aborted_transactions", lambda *_: [], seeds=2),
        run(("transact", "read"), ()),
    ),
    (
        replaces(
            "transactions are read before they end",
            Log,
            "last_stable_offset",
            property(lambda self: self.high_watermark),
            seeds=4,
        ),
        run(("transact", "read"), ()),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "simulation"), PLANTS, ids=lambda each: str(each) if isinstance(each, Plant) else "")
def test_a_planted_bug_is_found(plant: Plant, simulation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.plant(monkeypatch)
    must_be_found(plant, simulation)
