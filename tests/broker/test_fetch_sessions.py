"""Fetch sessions by KIP-227: said once, remembered, told apart by epoch, and none starves."""

from __future__ import annotations

from millstream.broker.fetch_sessions import FetchSessions
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from millstream.protocol.uuid import Uuid

VERSION = 12


class CountingRandom:
    """Ids in order, so that tests can name them."""

    def __init__(self) -> None:
        self._next = 0

    def below(self, bound: int) -> int:
        self._next += 1
        return self._next % bound

    def uuid(self) -> Uuid:
        return Uuid(bytes(16))


def sessions(slots: int = 10) -> FetchSessions:
    return FetchSessions(CountingRandom(), slots)


def ask(
    *indexes: int, session_id: int = 0, epoch: int = 0, forget: tuple[int, ...] = (), offset: int = 0, replica: int = -1
) -> FetchRequest:
    wanted = [FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1000) for index in indexes]
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        replica_id=replica,
        replica_state=ReplicaState(),
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=wanted)] if wanted else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forget))] if forget else [],
    )


def answer(index: int, *, high_watermark: int = 5, records: bytes = b"", error: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=high_watermark,
        last_stable_offset=high_watermark,
        log_start_offset=0,
        aborted_transactions=None,
        records=records,
    )


def test_a_session_remembers_what_was_said() -> None:
    known = sessions()
    first = known.plan(ask(0, 1), VERSION, 0)
    assert first.session_id != 0
    second = known.plan(ask(session_id=first.session_id, epoch=1), VERSION, 1)
    assert [item.partition for item in second.wanted] == [0, 1]
    third = known.plan(ask(2, session_id=first.session_id, epoch=2, forget=(0,)), VERSION, 2)
    assert [item.partition for item in third.wanted] == [1, 2]


def test_the_final_epoch_asks_for_no_session() -> None:
    known = sessions()
    assert known.plan(ask(0, epoch=-1), VERSION, 0).session_id == 0
    assert len(known) == 0


def test_closing_a_session_forgets_it() -> None:
    known = sessions()
    first = known.plan(ask(0), VERSION, 0)
    known.plan(ask(0, session_id=first.session_id, epoch=-1), VERSION, 0)
    assert known.plan(ask(session_id=first.session_id, epoch=1), VERSION, 0).error is (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )


def test_a_wrong_epoch_is_refused_and_the_session_lives_on() -> None:
    known = sessions()
    first = known.plan(ask(0), VERSION, 0)
    assert known.plan(ask(session_id=first.session_id, epoch=7), VERSION, 0).error is (
        ErrorCode.INVALID_FETCH_SESSION_EPOCH
    )
    assert known.plan(ask(session_id=first.session_id, epoch=1), VERSION, 0).error is ErrorCode.NONE


def test_a_session_that_forgot_everything_ends() -> None:
    known = sessions()
    first = known.plan(ask(0), VERSION, 0)
    assert known.plan(ask(session_id=first.session_id, epoch=1, forget=(0,)), VERSION, 0).session_id == 0
    assert len(known) == 0


def test_names_and_ids_do_not_mix_in_one_session() -> None:
    known = sessions()
    first = known.plan(ask(0), VERSION, 0)
    assert known.plan(ask(session_id=first.session_id, epoch=1), 13, 0).error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_an_incremental_answer_carries_only_news() -> None:
    session = sessions().plan(ask(0), VERSION, 0).session
    assert session is not None
    key = ("t", 0)
    assert session.is_news(key, answer(0, high_watermark=5))
    assert not session.is_news(key, answer(0, high_watermark=5))
    assert session.is_news(key, answer(0, high_watermark=6))
    assert session.is_news(key, answer(0, high_watermark=6, records=b"x"))


def test_an_error_is_repeated_and_its_end_is_said() -> None:
    session = sessions().plan(ask(0), VERSION, 0).session
    assert session is not None
    key = ("t", 0)
    session.is_news(key, answer(0))
    failing = answer(0, high_watermark=-1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert session.is_news(key, failing)
    assert session.is_news(key, failing)
    assert session.is_news(key, answer(0))


def test_a_partition_that_was_served_waits_behind_the_others() -> None:
    known = sessions()
    first = known.plan(ask(0, 1, 2), VERSION, 0)
    assert first.session is not None
    first.session.is_news(("t", 0), answer(0, records=b"x"))
    second = known.plan(ask(session_id=first.session_id, epoch=1), VERSION, 0)
    assert [item.partition for item in second.wanted] == [1, 2, 0]


def test_a_full_cache_serves_without_a_session() -> None:
    known = sessions(slots=1)
    known.plan(ask(0), VERSION, 0)
    refused = known.plan(ask(1), VERSION, 10)
    assert refused.session_id == 0
    assert [item.partition for item in refused.wanted] == [1]


def test_a_session_at_rest_gives_way_after_two_minutes() -> None:
    known = sessions(slots=1)
    known.plan(ask(0), VERSION, 0)
    assert known.plan(ask(1), VERSION, 120_001).session_id != 0


def test_a_follower_pushes_a_consumer_out() -> None:
    known = sessions(slots=1)
    consumer = known.plan(ask(0), VERSION, 0)
    assert known.plan(ask(0, replica=2), VERSION, 1).session_id not in (0, consumer.session_id)
    assert known.plan(ask(1), VERSION, 2).session_id == 0
