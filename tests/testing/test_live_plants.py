"""The checker on live runs: for every anomaly a real broker is made to cause it, and it is found by its name.

`test_checking.py` writes its bad histories by hand. Here a function of the broker is replaced by a wrong one, clients
work on a simulated cluster of one, and all that counts is what they saw: nodes are not looked into. The same runs with
the right functions raise no alarm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from millstream.testing.checking import Kind
from millstream.testing.simulation import Plan, Report, simulate
from tests.testing import plants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WRITE = ("write", "read")
TRANSACT = ("write", "transact", "read")
EXCHANGE = ("exchange", "read")
COMPACT = ("compact", "read")
GROUPS = ("write", "group")
CONSUMER_GROUPS = ("write", "consumer-group")


# The first one finds all of them at present; what clients do when follows from the seed, and shifts with the product.
SEEDS = (1, 2, 3)


def run(work: tuple[str, ...], seed: int) -> Report:
    return simulate(Plan(seed=seed, nodes=1, seconds=15, faults=(), layout="combined", work=work, invariants=False))


class Plant(NamedTuple):
    """What the broker does wrong, and what that is called."""

    kind: Kind
    what: str
    plant: Callable[[pytest.MonkeyPatch], None]
    work: tuple[str, ...]


PLANTS = [
    Plant(Kind.LOST, "a log cuts off what it has just acknowledged", plants.loses, WRITE),
    Plant(Kind.UNSEEN, "the high watermark stands still", plants.hides_what_comes_late, WRITE),
    Plant(Kind.ONE_VALUE_AT_TWO_OFFSETS, "a batch is appended twice", plants.doubles, WRITE),
    Plant(Kind.TWO_VALUES_AT_ONE_OFFSET, "producers get a wrong offset", plants.answers_with_the_offset_before, WRITE),
    Plant(Kind.READ_OF_FAILED_WRITE, "what was refused is written", plants.writes_and_refuses, WRITE),
    Plant(Kind.READ_OF_UNKNOWN_VALUE, "a byte of a value is changed", plants.changes_a_byte, WRITE),
    Plant(Kind.SKIPPED, "a fetch begins behind the asked offset", plants.begins_later, WRITE),
    Plant(Kind.WENT_BACK, "the batches of a fetch are reordered", plants.reorders, WRITE),
    Plant(Kind.END_WENT_BACK, "ListOffsets answers with an old end", plants.answers_with_an_old_end, WRITE),
    Plant(
        Kind.READ_OF_ABORTED_WRITE,
        "aborted transactions are not listed",
        plants.lists_no_aborted_transactions,
        TRANSACT,
    ),
    Plant(Kind.TORN, "a commit is an abort in some partitions", plants.aborts_some_partitions, TRANSACT),
    Plant(
        Kind.STUCK_STABLE_OFFSET,
        "a marker does not end its transaction",
        plants.ends_no_transaction,
        TRANSACT,
    ),
    Plant(
        Kind.READ_OF_OWN_UNCOMMITTED_WRITE,
        "transactions are read before they end",
        plants.shows_open_transactions,
        EXCHANGE,
    ),
    Plant(Kind.CYCLE, "transactions are read before they end", plants.shows_open_transactions, EXCHANGE),
    Plant(Kind.COMMITTED_OFFSET_WENT_BACK, "commits are acknowledged and not kept", plants.forgets_commits, GROUPS),
    Plant(Kind.COMMITTED_OFFSET_WENT_BACK, "commits of transactions are not kept", plants.forgets_commits, TRANSACT),
    Plant(Kind.TWO_OWNERS, "all members are sent one assignment", plants.sends_one_assignment_to_all, GROUPS),
    Plant(Kind.TWO_OWNERS, "partitions are assigned to all members", plants.assigns_all_to_everybody, CONSUMER_GROUPS),
    Plant(
        Kind.NEWEST_VALUE_LOST,
        "compaction takes the newest value for an old one",
        plants.loses_the_newest,
        COMPACT,
    ),
    Plant(Kind.DELETED_VALUE_CAME_BACK, "compaction overlooks tombstones", plants.overlooks_tombstones, COMPACT),
]


def test_there_is_a_plant_for_every_anomaly() -> None:
    assert {plant.kind for plant in PLANTS} == set(Kind)


# Without readers there is the final read alone.
FINAL_ONLY = [
    Plant(Kind.READ_OF_ABORTED_WRITE, "aborted", plants.lists_no_aborted_transactions, ("write", "transact")),
    Plant(Kind.READ_OF_FAILED_WRITE, "failed", plants.writes_and_refuses, ("write",)),
    Plant(Kind.READ_OF_UNKNOWN_VALUE, "changed", plants.changes_a_byte, ("write",)),
    Plant(Kind.WENT_BACK, "out of order", plants.reorders, ("write",)),
    Plant(Kind.ONE_VALUE_AT_TWO_OFFSETS, "doubled", plants.doubles, ("write",)),
]


def reports(plant: Plant, patch: pytest.MonkeyPatch) -> Iterator[Report]:
    """Of one seed after the other, up to the one that has found it; fails if none has."""
    plant.plant(patch)
    ends = []
    for seed in SEEDS:
        report = run(plant.work, seed)
        yield report
        found = {anomaly.kind for anomaly in report.anomalies}
        if plant.kind in found:
            return
        ends.append(f"seed {seed}: found {found or 'nothing'}, the run ended with {report.violation!r}")
    pytest.fail("\n".join(ends))


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant.kind.name.lower()}: {plant.what}")
def test_a_planted_anomaly_is_found_by_its_name(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(reports(plant, monkeypatch))


@pytest.mark.parametrize("plant", FINAL_ONLY, ids=lambda plant: plant.kind.name.lower())
def test_the_final_read_alone_shows_it(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    for report in reports(plant, monkeypatch):
        assert report.history.polled == []


@pytest.mark.parametrize("work", dict.fromkeys(plant.work for plant in PLANTS), ids="+".join)
def test_the_same_run_of_the_right_broker_raises_no_alarm(work: tuple[str, ...]) -> None:
    report = run(work, SEEDS[0])
    assert report.violation is None
    assert report.anomalies == []
