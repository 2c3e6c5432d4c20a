"""The active controller's sessions: who is silent is fenced, and a controller's own pause is nobody's silence."""

from __future__ import annotations

from tests.metadata.clusters import cluster, fence, registration

from millstream.metadata.broker_sessions import BrokerSessions
from millstream.metadata.delta import apply
from millstream.protocol.messages.metadata.feature_level import FeatureLevelRecord
from millstream.protocol.messages.metadata.register_broker import BrokerFeature

TIMEOUT_MS, LOOK_MS = 9_000, 500
IMAGE = cluster([1, 2, 3])
EPOCHS = {broker.id: broker.epoch for broker in IMAGE.brokers.values()}


def begun(image=IMAGE, now_ms=0):
    sessions = BrokerSessions(TIMEOUT_MS, LOOK_MS)
    sessions.begin(image, now_ms)
    return sessions


def look_until(sessions, now_ms, *, heard=(), image=IMAGE, since_ms=0):
    """Look at the steady pace; `heard` brokers send a heartbeat before each look."""
    found = []
    for at_ms in range(since_ms + LOOK_MS, now_ms + 1, LOOK_MS):
        for broker_id in heard:
            sessions.heard(broker_id, EPOCHS[broker_id], 10, at_ms)
        found = sessions.expired(image, at_ms)
    return found


def test_a_new_active_controller_gives_everybody_a_whole_session():
    sessions = begun(now_ms=1_000_000)
    assert look_until(sessions, 1_000_000 + TIMEOUT_MS - LOOK_MS, since_ms=1_000_000) == []
    assert look_until(sessions, 1_000_000 + TIMEOUT_MS, since_ms=1_000_000 + TIMEOUT_MS - LOOK_MS) == [
        (broker_id, EPOCHS[broker_id]) for broker_id in (1, 2, 3)
    ]


def test_only_the_silent_one_expires():
    sessions = begun()
    assert look_until(sessions, 3 * TIMEOUT_MS, heard=(1, 3)) == [(2, EPOCHS[2])]


def test_a_fenced_broker_has_nothing_to_lose():
    image = fence(IMAGE, 2)
    assert look_until(begun(image), 2 * TIMEOUT_MS, heard=(1, 3), image=image) == []


def test_a_broker_that_was_unfenced_elsewhere_starts_with_a_whole_session():
    sessions = begun(fence(IMAGE, 2))
    assert look_until(sessions, TIMEOUT_MS, heard=(1, 3)) == []
    assert look_until(sessions, TIMEOUT_MS + TIMEOUT_MS, heard=(1, 3), since_ms=TIMEOUT_MS) == [(2, EPOCHS[2])]


def test_a_look_that_comes_late_gives_everybody_the_time_it_is_late():
    sessions = begun()
    assert look_until(sessions, 2_000, heard=(1, 2, 3)) == []
    late_ms = 2_000 + 4 * TIMEOUT_MS
    assert sessions.expired(IMAGE, late_ms) == [], "nobody could be heard while the controller stood still"
    assert look_until(sessions, late_ms + 2 * TIMEOUT_MS, since_ms=late_ms) != []


def test_alive_is_this_incarnation_only():
    sessions = begun()
    assert sessions.is_alive(1, EPOCHS[1], TIMEOUT_MS - 1)
    assert not sessions.is_alive(1, EPOCHS[1] - 1, 0)
    assert not sessions.is_alive(1, EPOCHS[1], TIMEOUT_MS)
    assert not sessions.is_alive(9, 1, 0)


def test_a_broker_may_stop_when_all_others_know_who_follows():
    sessions = begun()
    sessions.heard(1, EPOCHS[1], 5, 1)
    assert not sessions.may_stop(IMAGE, 1), "it has not begun to shut down"
    sessions.shutting_down(1, 20)
    sessions.heard(2, EPOCHS[2], 20, 1)
    sessions.heard(3, EPOCHS[3], 19, 1)
    assert not sessions.may_stop(IMAGE, 1)
    sessions.heard(3, EPOCHS[3], 20, 2)
    assert sessions.may_stop(IMAGE, 1)


def test_a_broker_that_is_gone_is_not_waited_for():
    sessions = begun()
    sessions.shutting_down(1, 20)
    sessions.heard(2, EPOCHS[2], 20, 1)
    assert sessions.may_stop(fence(IMAGE, 3), 1)


def test_a_doubtful_broker_is_soon_heard_of_or_gone():
    sessions = begun()
    look_until(sessions, 2_000, heard=(1, 2, 3))
    sessions.doubt(2, EPOCHS[2], 2_000, 2_500)
    assert look_until(sessions, 4_000, heard=(1, 3), since_ms=2_000) == []
    assert look_until(sessions, 4_500, heard=(1, 3), since_ms=4_000) == [(2, EPOCHS[2])]
    sessions.heard(2, EPOCHS[2], 10, 4_500)
    assert look_until(sessions, 4_500 + TIMEOUT_MS - LOOK_MS, heard=(1, 3), since_ms=4_500) == []
    sessions.doubt(2, EPOCHS[2] - 1, 5_000, 2_500)  # of an earlier life
    assert look_until(sessions, 4_500 + TIMEOUT_MS - LOOK_MS, heard=(1, 3), since_ms=4_500) == []


def test_who_speaks_rarely_is_silent_for_longer_before_it_counts():
    sessions = BrokerSessions(2_000, 100)
    sessions.begin(IMAGE, 0)
    for at_ms in range(100, 20_001, 100):
        if at_ms % 2_000 == 0:
            sessions.heard(2, EPOCHS[2], 10, at_ms)  # as a broker of Apache Kafka does
        for broker_id in (1, 3):
            sessions.heard(broker_id, EPOCHS[broker_id], 10, at_ms)
        assert sessions.expired(IMAGE, at_ms) == [], at_ms
    ends = {}
    for at_ms in range(20_100, 30_001, 100):
        for broker_id, _ in sessions.expired(IMAGE, at_ms):
            ends.setdefault(broker_id, at_ms)
    assert ends == {1: 22_000, 2: 26_000, 3: 22_000}


def test_nobody_is_waited_for_longer_than_by_apache_kafka():
    sessions = BrokerSessions(2_000, 100)
    sessions.begin(IMAGE, 0)
    sessions.heard(2, EPOCHS[2], 10, 0)
    sessions.heard(2, EPOCHS[2], 10, 60_000)  # the controller itself stood still
    assert sessions.is_alive(2, EPOCHS[2], 68_999)
    assert not sessions.is_alive(2, EPOCHS[2], 69_000)


def test_who_asked_often_while_it_was_fenced_may_speak_rarely_afterwards():
    """A broker of Apache Kafka: some heartbeats in a row until it is let in, then one every two seconds."""
    sessions = BrokerSessions(1_500, LOOK_MS)
    sessions.begin(IMAGE, 0)
    for at_ms in range(10, 200, 10):
        sessions.heard(2, EPOCHS[2], 10, at_ms, pace_unknown=True)
    fenced = []
    for at_ms in range(LOOK_MS, 20_001, LOOK_MS):
        for broker_id in (1, 3):
            sessions.heard(broker_id, EPOCHS[broker_id], 10, at_ms)
        if at_ms % 2_000 == 0:
            sessions.heard(2, EPOCHS[2], 10, at_ms)
        fenced += sessions.expired(IMAGE, at_ms)
    assert fenced == []


def test_a_broker_that_was_let_in_is_soon_measured_by_its_own_pace():
    sessions = BrokerSessions(1_500, LOOK_MS)
    sessions.begin(IMAGE, 0)
    sessions.heard(2, EPOCHS[2], 10, 0, pace_unknown=True)
    for at_ms in range(300, 2_001, 300):
        sessions.heard(2, EPOCHS[2], 10, at_ms)
    assert sessions.is_alive(2, EPOCHS[2], 1_800 + 1_499)
    assert not sessions.is_alive(2, EPOCHS[2], 1_800 + 1_500)


def test_a_new_active_controller_waits_longer_for_a_broker_of_another_kind():
    """It cannot know who speaks how often; a broker of Apache Kafka is known by features that are not ours."""
    own = registration(2)
    own.features = [
        *own.features,
        BrokerFeature(name="share.version", min_supported_version=0, max_supported_version=1),
    ]
    image, _ = apply(IMAGE, [own], offset=IMAGE.offset + 1)
    sessions = BrokerSessions(1_500, LOOK_MS)
    sessions.begin(image, 0)
    assert sessions.is_alive(2, own.broker_epoch, 5_999)
    assert not sessions.is_alive(2, own.broker_epoch, 6_000)
    assert not sessions.is_alive(1, EPOCHS[1], 1_500)
    # Where that feature is in use ours register it too: better some seconds too long than to fence who speaks rarely.
    image, _ = apply(image, [FeatureLevelRecord(name="share.version", feature_level=1)], offset=image.offset + 1)
    sessions.begin(image, 0)
    assert sessions.is_alive(2, own.broker_epoch, 5_999)
