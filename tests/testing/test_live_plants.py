"""The checker on live runs: for every anomaly a real broker is made to cause it, and it is found by its name.

`test_checking.py` writes its bad histories by hand. Here a function of the broker is replaced by a wrong one, clients
work on a simulated cluster of one, and all that counts is what they saw: nodes are not looked into. The same runs with
the right functions raise no alarm.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from millstream.broker import transaction_markers
from millstream.broker.partition import Partition
from millstream.groups.assignors import ASSIGNORS
from millstream.groups.classic import syncing
from millstream.groups.consumer.group import ConsumerGroup
from millstream.groups.offsets.store import CommittedOffsets
from millstream.log import compaction_rewrite
from millstream.log.compaction_keys import NewestOffsets, fold
from millstream.log.log import Log
from millstream.log.producers import Origin, ProducerStates
from millstream.protocol.errors import OutOfOrderSequence
from millstream.records.batch import stamp_crc
from millstream.records.reading import each_batch
from millstream.testing.checking import Kind
from millstream.testing.simulation import Plan, Report, simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.assignors.spec import GroupSpec, Partitions

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


# --- a log that loses, doubles, overwrites, changes and hides

append = Log.append_as_leader
read = Log.read_or_stretch
advance = Log.advance_high_watermark


def _is_clients(log: Log) -> bool:
    """Not one of the coordinators' or the quorum's."""
    return "__" not in log.directory


def _every(number: int) -> Callable[[], bool]:
    turns = count(1)
    return lambda: next(turns) % number == 0


def _appends(wrong: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Every fourth batch of a client is appended in the wrong way."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        is_turn = _every(4)

        def appends(log: Log, records: Any, *arguments: Any, **options: Any) -> Any:
            is_wrong = options.get("origin", Origin.CLIENT) is Origin.CLIENT and _is_clients(log) and is_turn()
            return (wrong if is_wrong else append)(log, records, *arguments, **options)

        patch.setattr(Log, "append_as_leader", appends)

    return plant


def _loses(log: Log, *arguments: Any, **options: Any) -> Any:
    appended = append(log, *arguments, **options)
    log.truncate_to(appended.base_offset, 0)
    return appended


def _doubles(log: Log, *arguments: Any, **options: Any) -> Any:
    appended = append(log, *arguments, **options)
    # The producer is not known, so its sequence is not checked.
    known, log.producers._producers = log.producers._producers, {}
    append(log, *arguments, **options)
    log.producers._producers = known
    return appended


def _writes_and_refuses(log: Log, *arguments: Any, **options: Any) -> Any:
    append(log, *arguments, **options)
    raise OutOfOrderSequence("it is written, and this says that it is not")


def _answers_with_the_offset_before(log: Log, *arguments: Any, **options: Any) -> Any:
    appended = append(log, *arguments, **options)
    return appended._replace(base_offset=max(appended.base_offset - 1, 0))


def _changes(log: Log, records: Any, *arguments: Any, **options: Any) -> Any:
    changed = bytearray(bytes(records).replace(b"writer-", b"wr1ter-"))
    stamp_crc(changed, 0, len(changed))
    return append(log, changed, *arguments, **options)


def _hides_what_comes_late(patch: pytest.MonkeyPatch) -> None:
    """Records are acknowledged and never become readable."""
    patch.setattr(Partition, "is_committed", lambda *_: True)

    def wrong(log: Log, offset: int) -> None:
        if log.high_watermark < 5 or not _is_clients(log):
            advance(log, offset)

    patch.setattr(Log, "advance_high_watermark", wrong)


# --- reads that leave out and reorder


def _reads(wrong: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(patch: pytest.MonkeyPatch) -> None:
        is_turn = _every(4)

        def reads(log: Log, *arguments: Any, **options: Any) -> Any:
            return (wrong if _is_clients(log) and is_turn() else read)(log, *arguments, **options)

        patch.setattr(Log, "read_or_stretch", reads)

    return plant


def _begins_later(log: Log, offset: int, max_bytes: int, upto_offset: int, **options: Any) -> Any:
    return read(log, min(offset + 3, upto_offset), max_bytes, upto_offset, **options)


def _turns_round(log: Log, *arguments: Any, **options: Any) -> Any:
    found = read(log, *arguments, **options)
    if not isinstance(found, bytes):
        return found
    batches = [found[position : position + header.size] for position, header in each_batch(found)]
    return b"".join(reversed(batches))


# --- transactions


def _aborts_some_partitions(patch: pytest.MonkeyPatch) -> None:
    right = transaction_markers.write_marker

    def wrong(node: Any, topic: str, index: int, marker: Any) -> Any:
        return right(node, topic, index, marker._replace(committed=False) if topic == "payments" else marker)

    patch.setattr(transaction_markers, "write_marker", wrong)


def _shows_open_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "last_stable_offset", property(lambda log: log.high_watermark))


# --- groups


def _forgets_commits(patch: pytest.MonkeyPatch) -> None:
    right = CommittedOffsets.apply

    def wrong(offsets: CommittedOffsets, key: Any, value: Any, **options: Any) -> None:
        if value is None or value.offset <= 5:
            right(offsets, key, value, **options)

    patch.setattr(CommittedOffsets, "apply", wrong)


def _sends_one_assignment_to_all(patch: pytest.MonkeyPatch) -> None:
    right = syncing._store

    def wrong(group: Any, request: Any, step: Any) -> Any:
        for each in request.assignments:
            each.assignment = request.assignments[0].assignment
        return right(group, request, step)

    patch.setattr(syncing, "_store", wrong)


def _assigns_all_to_everybody(patch: pytest.MonkeyPatch) -> None:
    def wrong(spec: GroupSpec) -> dict[str, Partitions]:
        everything = {topic: frozenset(range(number)) for topic, number in spec.partition_counts.items()}
        return dict.fromkeys(spec.members, everything)

    patch.setitem(ASSIGNORS, "uniform", wrong)
    patch.setattr(ConsumerGroup, "is_free", lambda *_: True)


# --- ends


def _answers_with_an_old_end(patch: pytest.MonkeyPatch) -> None:
    right, is_turn = Log.latest, _every(3)
    patch.setattr(Log, "latest", lambda log, end: right(log, end // 2 if _is_clients(log) and is_turn() else end))


# --- compaction


def _overlooks_tombstones(patch: pytest.MonkeyPatch) -> None:
    """They replace nothing, and are removed in their time."""
    right = compaction_rewrite._open

    def wrong(cleaner: Any, header: Any, chunk: Any, position: int, newest: NewestOffsets) -> bool:
        _, keys = right(header, chunk, position)
        for delta, key, is_tombstone, _ in keys:
            if key is not None and not is_tombstone:
                newest.put(key, header.base_offset + delta)
        return True

    patch.setattr(compaction_rewrite._Cleaner, "_note_keys", wrong)


class Plant(NamedTuple):
    """What the broker does wrong, and what that is called."""

    kind: Kind
    what: str
    plant: Callable[[pytest.MonkeyPatch], None]
    work: tuple[str, ...]


def replaced(target: object, name: str, wrong: object) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(target, name, wrong)


PLANTS = [
    Plant(Kind.LOST, "a log cuts off what it has just acknowledged", _appends(_loses), WRITE),
    Plant(Kind.UNSEEN, "the high watermark stands still", _hides_what_comes_late, WRITE),
    Plant(Kind.ONE_VALUE_AT_TWO_OFFSETS, "a batch is appended twice", _appends(_doubles), WRITE),
    Plant(
        Kind.TWO_VALUES_AT_ONE_OFFSET, "producers get a wrong offset", _appends(_answers_with_the_offset_before), WRITE
    ),
    Plant(Kind.READ_OF_FAILED_WRITE, "what was refused is written", _appends(_writes_and_refuses), WRITE),
    Plant(Kind.READ_OF_UNKNOWN_VALUE, "a byte of a value is changed", _appends(_changes), WRITE),
    Plant(Kind.SKIPPED, "a fetch begins behind the asked offset", _reads(_begins_later), WRITE),
    Plant(Kind.WENT_BACK, "the batches of a fetch are reordered", _reads(_turns_round), WRITE),
    Plant(Kind.END_WENT_BACK, "ListOffsets answers with an old end", _answers_with_an_old_end, WRITE),
    Plant(
        Kind.READ_OF_ABORTED_WRITE,
        "aborted transactions are not listed",
        replaced(Log, "aborted_transactions", lambda *_: []),
        TRANSACT,
    ),
    Plant(Kind.TORN, "a commit is an abort in some partitions", _aborts_some_partitions, TRANSACT),
    Plant(
        Kind.STUCK_STABLE_OFFSET,
        "a marker does not end its transaction",
        replaced(ProducerStates, "complete", lambda *_: None),
        TRANSACT,
    ),
    Plant(
        Kind.READ_OF_OWN_UNCOMMITTED_WRITE, "transactions are read before they end", _shows_open_transactions, EXCHANGE
    ),
    Plant(Kind.CYCLE, "transactions are read before they end", _shows_open_transactions, EXCHANGE),
    Plant(Kind.COMMITTED_OFFSET_WENT_BACK, "commits are acknowledged and not kept", _forgets_commits, GROUPS),
    Plant(Kind.COMMITTED_OFFSET_WENT_BACK, "commits of transactions are not kept", _forgets_commits, TRANSACT),
    Plant(Kind.TWO_OWNERS, "all members are sent one assignment", _sends_one_assignment_to_all, GROUPS),
    Plant(Kind.TWO_OWNERS, "partitions are assigned to all members", _assigns_all_to_everybody, CONSUMER_GROUPS),
    Plant(
        Kind.NEWEST_VALUE_LOST,
        "compaction takes the newest value for an old one",
        replaced(NewestOffsets, "replaced", lambda newest, key, offset: newest._offsets.get(fold(key), -1) >= offset),
        COMPACT,
    ),
    Plant(Kind.DELETED_VALUE_CAME_BACK, "compaction overlooks tombstones", _overlooks_tombstones, COMPACT),
]


def test_there_is_a_plant_for_every_anomaly() -> None:
    assert {plant.kind for plant in PLANTS} == set(Kind)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant.kind.name.lower()}: {plant.what}")
def test_a_planted_anomaly_is_found_by_its_name(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.plant(monkeypatch)
    ends = []
    for seed in SEEDS:
        report = run(plant.work, seed)
        found = {anomaly.kind for anomaly in report.anomalies}
        if plant.kind in found:
            return
        ends.append(f"seed {seed}: found {found or 'nothing'}, the run ended with {report.violation!r}")
    pytest.fail("\n".join(ends))


@pytest.mark.parametrize("work", dict.fromkeys(plant.work for plant in PLANTS), ids="+".join)
def test_the_same_run_of_the_right_broker_raises_no_alarm(work: tuple[str, ...]) -> None:
    report = run(work, SEEDS[0])
    assert report.violation is None
    assert report.anomalies == []
