"""Brokers that are made to err: each plant replaces functions of the product by wrong ones, as a test's patch.

They lose, double, reorder, tear, resurrect and so on; the product has no branches for them.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from millstream.groups.assignors.spec import GroupSpec, Partitions

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


def hides_what_comes_late(patch: pytest.MonkeyPatch) -> None:
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


def aborts_some_partitions(patch: pytest.MonkeyPatch) -> None:
    right = transaction_markers.write_marker

    def wrong(node: Any, topic: str, index: int, marker: Any) -> Any:
        return right(node, topic, index, marker._replace(committed=False) if topic == "payments" else marker)

    patch.setattr(transaction_markers, "write_marker", wrong)


def shows_open_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "last_stable_offset", property(lambda log: log.high_watermark))


def lists_no_aborted_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "aborted_transactions", lambda *_: [])


def ends_no_transaction(patch: pytest.MonkeyPatch) -> None:
    """A marker is written, and the transaction stays open for readers."""
    patch.setattr(ProducerStates, "complete", lambda *_: None)


# --- groups


def forgets_commits(patch: pytest.MonkeyPatch) -> None:
    right = CommittedOffsets.apply

    def wrong(offsets: CommittedOffsets, key: Any, value: Any, **options: Any) -> None:
        if value is None or value.offset <= 5:
            right(offsets, key, value, **options)

    patch.setattr(CommittedOffsets, "apply", wrong)


def sends_one_assignment_to_all(patch: pytest.MonkeyPatch) -> None:
    right = syncing._store

    def wrong(group: Any, request: Any, step: Any) -> Any:
        for each in request.assignments:
            each.assignment = request.assignments[0].assignment
        return right(group, request, step)

    patch.setattr(syncing, "_store", wrong)


def assigns_all_to_everybody(patch: pytest.MonkeyPatch) -> None:
    def wrong(spec: GroupSpec) -> dict[str, Partitions]:
        everything = {topic: frozenset(range(number)) for topic, number in spec.partition_counts.items()}
        return dict.fromkeys(spec.members, everything)

    patch.setitem(ASSIGNORS, "uniform", wrong)
    patch.setattr(ConsumerGroup, "is_free", lambda *_: True)


# --- ends


def answers_with_an_old_end(patch: pytest.MonkeyPatch) -> None:
    # Not always the same partitions of a client that asks for all of them in their order.
    right, is_turn = Log.latest, _every(5)
    patch.setattr(Log, "latest", lambda log, end: right(log, end // 2 if _is_clients(log) and is_turn() else end))


# --- compaction


def overlooks_tombstones(patch: pytest.MonkeyPatch) -> None:
    """They replace nothing, and are removed in their time."""
    right = compaction_rewrite._open

    def wrong(cleaner: Any, header: Any, chunk: Any, position: int, newest: NewestOffsets) -> bool:
        _, keys = right(header, chunk, position)
        for delta, key, is_tombstone, _ in keys:
            if key is not None and not is_tombstone:
                newest.put(key, header.base_offset + delta)
        return True

    patch.setattr(compaction_rewrite._Cleaner, "_note_keys", wrong)


def loses_the_newest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NewestOffsets, "replaced", lambda newest, key, offset: newest._offsets.get(fold(key), -1) >= offset)


loses = _appends(_loses)
doubles = _appends(_doubles)
writes_and_refuses = _appends(_writes_and_refuses)
answers_with_the_offset_before = _appends(_answers_with_the_offset_before)
changes_a_byte = _appends(_changes)
begins_later = _reads(_begins_later)
reorders = _reads(_turns_round)
