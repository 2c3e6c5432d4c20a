"""BrokerHeartbeat: from fenced to unfenced, through controlled shutdown, to the word that the broker may stop."""

from __future__ import annotations

import pytest
from tests.metadata.clusters import after, cluster, directory_of, topic, with_records, with_topics

from millstream.metadata.broker_lifecycle import BrokerIdNotRegistered, StaleBrokerEpoch
from millstream.metadata.broker_sessions import BrokerSessions
from millstream.metadata.decide_heartbeat import decide_heartbeat
from millstream.metadata.image import NO_LEADER
from millstream.metadata.record_types import BrokerRegistrationChangeRecord
from millstream.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest

CAUGHT_UP = 1_000


class Controller:
    """An image and the sessions of its brokers; time is what a test says."""

    def __init__(self, image):
        self.image = image
        self.sessions = BrokerSessions(9_000, 500)
        self.sessions.begin(image, 0)
        self.now_ms = 0

    def beat(self, broker_id, *, offset=CAUGHT_UP, epoch=None, fence=False, stop=False, **fields):
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.image.brokers[broker_id].epoch if epoch is None else epoch,
            current_metadata_offset=offset,
            want_fence=fence,
            want_shut_down=stop,
            **fields,
        )
        decision = decide_heartbeat(self.image, request, self.sessions, self.now_ms)
        if decision.records:
            self.image = after(self.image, decision)
        return decision

    def leader(self, partition=0):
        return self.image.topics.by_name["t"].partitions[partition].leader


def test_a_fenced_broker_serves_once_it_has_replayed_its_own_registration():
    controller = Controller(cluster([1], fenced=[2]))
    epoch = controller.image.brokers[2].epoch
    behind = controller.beat(2, offset=epoch - 1)
    assert (behind.response.is_caught_up, behind.response.is_fenced, behind.records) == (False, True, ())
    still = controller.beat(2, offset=epoch, fence=True)
    assert (still.response.is_caught_up, still.response.is_fenced) == (True, True)
    assert not controller.beat(2, offset=epoch).response.is_fenced
    assert controller.image.brokers[2].active


def test_an_ordinary_heartbeat_writes_nothing():
    controller = Controller(cluster([1, 2]))
    decision = controller.beat(1)
    assert decision.records == ()
    assert (decision.response.is_fenced, decision.response.should_shut_down) == (False, False)


def test_who_shuts_down_hands_over_first_and_stops_when_all_know():
    controller = Controller(with_topics(cluster([1, 2, 3]), topic("t", assigned={0: [1, 2, 3]})))
    for broker_id in (2, 3):
        controller.beat(broker_id, offset=controller.image.offset)
    asked = controller.beat(1, stop=True)
    assert not asked.response.should_shut_down
    assert (controller.leader(), controller.image.brokers[1].in_controlled_shutdown) == (2, True)
    assert not controller.beat(1, stop=True).response.should_shut_down, "2 and 3 have not heard of it"
    controller.beat(2, offset=controller.image.offset)
    assert not controller.beat(1, stop=True).response.should_shut_down, "3 has not"
    controller.beat(3, offset=controller.image.offset)
    told = controller.beat(1, stop=True)
    assert told.response.should_shut_down
    assert controller.image.brokers[1].fenced
    assert controller.beat(1, stop=True).response.should_shut_down, "also when the answer was lost"


def test_who_is_alone_may_stop_at_once():
    controller = Controller(with_topics(cluster([1]), topic("t", assigned={0: [1]})))
    assert controller.beat(1, stop=True).response.should_shut_down
    assert (controller.leader(), controller.image.brokers[1].fenced) == (NO_LEADER, True)


def test_all_may_stop_at_the_same_time():
    controller = Controller(with_topics(cluster([1, 2, 3]), topic("t", assigned={0: [1, 2, 3]})))
    for broker_id in (1, 2, 3):
        controller.beat(broker_id, offset=0, stop=True)
    for broker_id in (1, 2, 3):
        assert controller.beat(broker_id, offset=0, stop=True).response.should_shut_down


def test_a_broker_can_ask_to_be_fenced():
    controller = Controller(with_topics(cluster([1, 2]), topic("t", assigned={0: [1, 2]})))
    assert controller.beat(1, fence=True).response.is_fenced
    assert (controller.leader(), controller.image.brokers[1].fenced) == (2, True)


def test_a_failed_directory_is_led_by_others():
    controller = Controller(with_topics(cluster([1, 2]), topic("t", assigned={0: [1, 2]})))
    controller.image = with_records(
        controller.image,
        BrokerRegistrationChangeRecord(
            broker_id=1, broker_epoch=controller.image.brokers[1].epoch, log_dirs=[directory_of(1), directory_of(8)]
        ),
    )
    controller.beat(1, offline_log_dirs=[directory_of(1)])
    assert (controller.leader(), controller.image.brokers[1].log_dirs) == (2, (directory_of(8),))
    assert controller.beat(1, offline_log_dirs=[directory_of(9)]).records == ()


def test_strangers_and_earlier_lives_are_refused():
    controller = Controller(cluster([1]))
    with pytest.raises(StaleBrokerEpoch):
        controller.beat(1, epoch=5)
    with pytest.raises(BrokerIdNotRegistered):
        controller.beat(7, epoch=5)
