"""A follower matches its log with the leader's by epoch, cuts what differs, and believes only its epoch's leader."""

from __future__ import annotations

import pytest

from millstream.log.epochs import EpochStart
from millstream.protocol.errors import ErrorCode, FencedLeaderEpoch, UnknownLeaderEpoch
from millstream.protocol.messages.fetch import EpochEndOffset, PartitionData
from millstream.replication.follower import (
    AdvanceHighWatermark,
    AdvanceStart,
    Append,
    AskForOffsets,
    AwaitMetadata,
    PartitionFollower,
    Position,
    StartAnew,
    Truncate,
    TryAgainLater,
    truncation_offset,
)
from tests.replication.model import Cluster, Epochs, ModelLog


def answer(**fields: object) -> PartitionData:
    known = {"partition_index": 0, "high_watermark": 0, "aborted_transactions": None, "records": b"", **fields}
    return PartitionData(**known)  # type: ignore[arg-type]


def log_of(*epochs: tuple[int, int], end: int, mark: int = 0) -> ModelLog:
    """A log of `end` records, whose epochs begin at the offsets given."""
    return ModelLog(
        records=[(0, "x")] * end, high_watermark=mark, epochs=Epochs(EpochStart(*entry) for entry in epochs)
    )


def test_a_follower_asks_from_its_end_with_the_epoch_of_its_last_leader() -> None:
    assert PartitionFollower(1, 7).position(log_of((3, 0), (5, 4), end=6)) == Position(7, 6, 5)


def test_an_empty_log_has_no_epoch_to_ask_with() -> None:
    assert PartitionFollower(1, 7).position(log_of(end=0)) == Position(7, 0, -1)


def test_records_and_marks_are_taken_over_in_this_order() -> None:
    log = log_of((0, 0), end=3)
    got = answer(records=b"batches", high_watermark=5, log_start_offset=2)
    effects = PartitionFollower(1, 0).after_fetch(Position(0, 3, 0), got, log)
    assert effects == (Append(b"batches"), AdvanceHighWatermark(5), AdvanceStart(2))


def test_an_answer_without_news_changes_nothing() -> None:
    log = log_of((0, 0), end=3, mark=3)
    assert PartitionFollower(1, 0).after_fetch(Position(0, 3, 0), answer(high_watermark=3), log) == ()


def test_the_answer_to_an_earlier_epoch_or_offset_is_dropped() -> None:
    log = log_of((0, 0), end=3)
    follower = PartitionFollower(1, 1)
    assert follower.after_fetch(Position(0, 3, 0), answer(records=b"old"), log) == ()
    assert follower.after_fetch(Position(1, 2, 0), answer(records=b"old"), log) == ()
    diverging = answer(diverging_epoch=EpochEndOffset(epoch=0, end_offset=1))
    regrown = log_of((0, 0), (1, 1), end=3)
    assert follower.after_fetch(Position(1, 3, 0), diverging, regrown) == (), "cut and grown again since"
    assert follower.after_offsets(Position(0, 3, 0), 5, 9, log) == ()


def test_a_diverging_answer_cuts_and_does_nothing_else() -> None:
    """KAFKA-14704: its high watermark speaks of records that are not here yet."""
    log = log_of((0, 0), (1, 2), end=4, mark=1)
    got = answer(diverging_epoch=EpochEndOffset(epoch=0, end_offset=2), high_watermark=4, records=b"not these")
    assert PartitionFollower(2, 2).after_fetch(Position(2, 4, 1), got, log) == (Truncate(2),)


@pytest.mark.parametrize(
    ("error", "effect"),
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, AskForOffsets()),
        (ErrorCode.FENCED_LEADER_EPOCH, AwaitMetadata()),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, TryAgainLater(ErrorCode.UNKNOWN_LEADER_EPOCH)),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, TryAgainLater(ErrorCode.NOT_LEADER_OR_FOLLOWER)),
        (ErrorCode.UNKNOWN_TOPIC_ID, TryAgainLater(ErrorCode.UNKNOWN_TOPIC_ID)),
        (ErrorCode.KAFKA_STORAGE_ERROR, TryAgainLater(ErrorCode.KAFKA_STORAGE_ERROR)),
    ],
)
def test_every_refusal_has_its_way_on(error: ErrorCode, effect: object) -> None:
    got = answer(error_code=error, high_watermark=-1)
    assert PartitionFollower(1, 0).after_fetch(Position(0, 3, 0), got, log_of((0, 0), end=3)) == (effect,)


@pytest.mark.parametrize(
    ("leader_start", "leader_end", "effects"),
    [
        (0, 2, (Truncate(2),)),  # an unclean election made a leader of one who has less
        (5, 9, (StartAnew(5),)),  # retention took what we lack
        (0, 9, ()),
        (3, 3, ()),
    ],
)
def test_outside_of_the_leaders_log_a_follower_finds_its_place(
    leader_start: int, leader_end: int, effects: tuple[object, ...]
) -> None:
    log = log_of((0, 0), end=3)
    assert PartitionFollower(1, 0).after_offsets(Position(0, 3, 0), leader_start, leader_end, log) == effects


@pytest.mark.parametrize(
    ("own", "end", "leader", "cut"),
    [
        (((0, 0), (1, 5)), 8, (1, 6), 6),  # both know epoch 1, and the leader's ended earlier
        (((0, 0), (1, 5)), 8, (0, 7), 5),  # the leader has more of epoch 0 than we have: ours ended at 5
        (((0, 0), (1, 5)), 8, (0, 3), 3),
        (((0, 0), (3, 5)), 8, (2, 7), 5),  # we have nothing of epoch 2: go back to before epoch 3 and ask again
        (((4, 3),), 8, (2, 7), 3),  # all that we have is newer than that
        ((), 8, (2, 7), 7),
    ],
)
def test_where_two_histories_part(
    own: tuple[tuple[int, int], ...], end: int, leader: tuple[int, int], cut: int
) -> None:
    assert truncation_offset(*leader, log_of(*own, end=end)) == cut


def test_a_reader_with_another_epoch_is_told() -> None:
    follower = PartitionFollower(1, 5)
    follower.check_epoch(5)
    follower.check_epoch(-1)
    with pytest.raises(FencedLeaderEpoch):
        follower.check_epoch(4)
    with pytest.raises(UnknownLeaderEpoch):
        follower.check_epoch(6)


def test_a_new_follower_copies_everything_and_learns_the_mark() -> None:
    cluster = Cluster()
    cluster.append("abc")
    cluster.settle()
    assert [replica.log.values() for replica in cluster.replicas.values()] == ["abc"] * 3
    assert [replica.log.high_watermark for replica in cluster.replicas.values()] == [3] * 3
