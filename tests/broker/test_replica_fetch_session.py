"""A follower tells its leader everything once, and then only what changed."""

from __future__ import annotations

from millstream.broker.replica_fetch_session import Asked, Key, ReplicaFetchSession
from millstream.protocol.messages.fetch import FetchRequest
from millstream.protocol.uuid import Uuid
from millstream.replication.follower import Position

TOPIC = Uuid(b"0123456789abcdef")


def asked(offset: int) -> Asked:
    return Asked(Position(leader_epoch=3, offset=offset, last_fetched_epoch=2), log_start_offset=0)


def request_of(
    session: ReplicaFetchSession, wanted: dict[Key, Asked], forgotten: list[Key] | None = None
) -> FetchRequest:
    request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[])
    session.fill(request, wanted, forgotten or [])
    return request


def named(request: FetchRequest) -> list[tuple[int, int]]:
    return [(part.partition, part.fetch_offset) for topic in request.topics for part in topic.partitions]


def test_first_everything_then_what_moved() -> None:
    session = ReplicaFetchSession(1000)
    first = request_of(session, {(TOPIC, 0): asked(5), (TOPIC, 1): asked(7)})
    assert (first.session_id, first.session_epoch, named(first)) == (0, 0, [(0, 5), (1, 7)])
    assert session.waits_for_id
    session.answered(42)
    second = request_of(session, {(TOPIC, 0): asked(5), (TOPIC, 1): asked(9)})
    assert (second.session_id, second.session_epoch, named(second)) == (42, 1, [(1, 9)])
    assert request_of(session, {}).session_epoch == 2


def test_what_is_left_out_is_forgotten_once() -> None:
    session = ReplicaFetchSession(1000)
    request_of(session, {(TOPIC, 0): asked(5), (TOPIC, 1): asked(7)})
    session.answered(42)
    request = request_of(session, {}, [(TOPIC, 1), (TOPIC, 8)])
    assert [(gone.topic_id, gone.partitions) for gone in request.forgotten_topics_data] == [(TOPIC, [1])]
    assert request_of(session, {}, [(TOPIC, 1)]).forgotten_topics_data == []


def test_a_request_tells_what_it_replaces_for_answers_that_are_under_way() -> None:
    session = ReplicaFetchSession(1000)
    request_of(session, {(TOPIC, 0): asked(5), (TOPIC, 1): asked(7)})
    session.answered(42)
    request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[])
    before = session.fill(request, {(TOPIC, 0): asked(6), (TOPIC, 2): asked(0)}, [(TOPIC, 1)])
    assert before == {(TOPIC, 0): asked(5), (TOPIC, 2): None, (TOPIC, 1): asked(7)}


def test_a_lost_session_begins_again_and_late_answers_don_t_count() -> None:
    session = ReplicaFetchSession(1000)
    request_of(session, {(TOPIC, 0): asked(5)})
    session.answered(42)
    generation = session.generation
    session.give_up()
    assert session.generation != generation
    again = request_of(session, {(TOPIC, 0): asked(5)})
    assert (again.session_id, again.session_epoch, named(again)) == (42, 0, [(0, 5)])


def test_without_a_session_every_request_names_everything() -> None:
    session = ReplicaFetchSession(1000)
    for _ in range(3):
        request = request_of(session, {(TOPIC, 0): asked(5)})
        assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [(0, 5)])
        session.answered(0)
        assert session.is_new
