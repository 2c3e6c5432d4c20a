"""Offsets in a transaction, between the group's shard and the log under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.groups.machine import GroupMachine
from millstream.metadata.image import MetadataImage
from millstream.protocol.errors import ErrorCode, StorageError
from millstream.protocol.messages.groups.offset_commit import OffsetCommitKey, OffsetCommitValue
from millstream.protocol.uuid import ZERO_UUID
from millstream.records.building import end_transaction_marker
from millstream.replicated import Decision, Record
from millstream.runtime.shard import Shard
from millstream.settings.effective import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

PRODUCER = (7, 3)


class Journal:
    """A partition that may refuse, and that commits when told to."""

    def __init__(self) -> None:
        self.end_offset = 0
        self.is_down = False

    def append_internal(self, batch: bytearray, now_ms: int) -> int:
        if self.is_down:
            raise StorageError("the disk is full")
        self.end_offset += 1
        return self.end_offset - 1

    def is_committed(self, last_offset: int) -> bool:
        return True

    def when_committed(self, last_offset: int, listener: Callable[[], None]) -> None:
        raise AssertionError("everything is committed at once")


class StoppedClock:
    def wall_ms(self) -> int:
        return 1_000

    def monotonic_ms(self) -> int:
        return 1_000


class Heard:
    """What requests were answered."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def answer(self, _token: int, response: Any) -> None:
        self.answers.append(response)

    def refuse(self, _token: int, code: ErrorCode) -> None:
        self.answers.append(code)


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def shard(journal: Journal, heard: Heard) -> Shard[GroupMachine]:
    made: Shard[GroupMachine] = Shard(
        GroupMachine(Settings, MetadataImage, lambda: ZERO_UUID),
        journal,
        StoppedClock(),  # type: ignore[arg-type]
        answer=heard.answer,
        on_effect=lambda _, __: None,
        refuse=heard.refuse,
        commit_timeout_ms=5_000,
    )
    made.activate(-1)
    return made


def commit(shard: Shard[GroupMachine], offset: int) -> None:
    decision = Decision(
        records=(
            Record(
                OffsetCommitKey(group="g", topic="t", partition=0),
                OffsetCommitValue(offset=offset, leader_epoch=-1, metadata="", commit_timestamp=0),
                3,
            ),
        ),
        response="stored",
        transaction=PRODUCER,
    )
    shard.submit(1, lambda *_: decision)


def end(shard: Shard[GroupMachine], *, committed: bool) -> None:
    marker = end_transaction_marker(
        commit=committed, producer_id=PRODUCER[0], producer_epoch=PRODUCER[1], coordinator_epoch=0, timestamp=0
    )
    shard.end_transaction(marker, *PRODUCER, committed=committed)


def offset_of(shard: Shard[GroupMachine]) -> int | None:
    found = shard.machine.offsets.get("g", "t", 0)
    return None if found is None else found.offset


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_decides_over_pending_offsets(shard: Shard[GroupMachine], committed: bool) -> None:
    commit(shard, 5)
    assert offset_of(shard) is None
    assert shard.machine.offsets.is_unstable("g", "t", 0)
    end(shard, committed=committed)
    assert offset_of(shard) == (5 if committed else None)
    assert not shard.machine.offsets.is_unstable("g", "t", 0)


def test_a_write_that_failed_leaves_nothing_pending(shard: Shard[GroupMachine], journal: Journal, heard: Heard) -> None:
    """Bug 41, KAFKA-15784."""
    journal.is_down = True
    commit(shard, 5)
    assert heard.answers == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert not shard.machine.offsets.knows("g")
    journal.is_down = False
    end(shard, committed=True)
    assert offset_of(shard) is None


def test_a_marker_that_could_not_be_written_decides_nothing(shard: Shard[GroupMachine], journal: Journal) -> None:
    commit(shard, 5)
    journal.is_down = True
    with pytest.raises(StorageError):
        end(shard, committed=True)
    assert shard.machine.offsets.is_unstable("g", "t", 0)
    assert offset_of(shard) is None
