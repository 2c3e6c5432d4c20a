"""Registration: what a broker says of itself is checked, and two brokers never share a number."""

from __future__ import annotations

import pytest
from tests.metadata.clusters import after, cluster, directory_of, fence, topic, with_topics

from millstream.metadata.broker_sessions import BrokerSessions
from millstream.metadata.decide_registration import (
    DuplicateBroker,
    InconsistentCluster,
    InvalidRegistration,
    decide_controller_registration,
    decide_registration,
)
from millstream.metadata.image import METADATA_VERSION
from millstream.protocol.errors import UnsupportedVersion
from millstream.protocol.messages import broker_registration, controller_registration
from millstream.protocol.messages.broker_registration import BrokerRegistrationRequest
from millstream.protocol.messages.controller_registration import ControllerRegistrationRequest
from millstream.protocol.uuid import DIRECTORY_LOST, Uuid

LIFE, NEXT_LIFE = Uuid(b"life" * 4), Uuid(b"next" * 4)


def request(broker_id=5, **fields):
    given = {
        "cluster_id": "ours",
        "incarnation_id": LIFE,
        "listeners": [broker_registration.Listener(name="PLAINTEXT", host="h", port=1, security_protocol=0)],
        "features": [
            broker_registration.Feature(name=METADATA_VERSION, min_supported_version=7, max_supported_version=30)
        ],
        "rack": "a",
        "log_dirs": [directory_of(broker_id)],
    }
    return BrokerRegistrationRequest(broker_id=broker_id, **{**given, **fields})


def sessions_of(image, now_ms=0):
    sessions = BrokerSessions(9_000, 500)
    sessions.begin(image, now_ms)
    return sessions


def register(image, asked, sessions=None, now_ms=0):
    return decide_registration(image, asked, sessions or sessions_of(image), "ours", now_ms)


def test_a_broker_is_registered_fenced_with_all_that_it_said():
    image = cluster([1])
    decision = register(image, request())
    broker = after(image, decision).brokers[5]
    assert broker.epoch == decision.response.broker_epoch == image.offset + 1
    assert (broker.fenced, broker.rack, broker.log_dirs) == (True, "a", (directory_of(5),))
    assert broker.endpoints[0].host == "h"


def test_asking_again_because_the_answer_was_lost_changes_nothing():
    image = after(cluster([1]), first := register(cluster([1]), request()))
    again = register(image, request())
    assert (again.records, again.response.broker_epoch) == ((), first.response.broker_epoch)


def test_a_living_broker_keeps_its_number():
    image = cluster([1, 2])
    other_disk = request(2, incarnation_id=NEXT_LIFE, log_dirs=[directory_of(7)])
    sessions = sessions_of(image)
    with pytest.raises(DuplicateBroker):
        register(image, other_disk, sessions, 8_999)
    assert register(image, other_disk, sessions, 9_000).records, "its session is over"
    assert register(fence(image, 2), other_disk).records, "it is fenced"


def test_who_holds_the_directories_of_its_predecessor_need_not_wait():
    image = with_topics(cluster([1, 2]), topic("t", assigned={0: [2, 1]}))
    image = after(image, register(image, request(2, incarnation_id=NEXT_LIFE)))
    partition = image.topics.by_name["t"].partitions[0]
    assert (partition.leader, partition.isr) == (1, (1,)), "the predecessor was fenced in the same step"


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"cluster_id": "theirs"}, InconsistentCluster),
        ({"log_dirs": []}, InvalidRegistration),
        ({"log_dirs": [directory_of(5), directory_of(5)]}, InvalidRegistration),
        ({"log_dirs": [DIRECTORY_LOST]}, InvalidRegistration),
        ({"log_dirs": [directory_of(1)]}, InvalidRegistration),
        ({"is_migrating_zk_broker": True}, InvalidRegistration),
        ({"features": []}, UnsupportedVersion),
    ],
)
def test_what_cannot_be_is_refused(fields, refusal):
    with pytest.raises(refusal):
        register(cluster([1]), request(**fields))


def test_a_broker_too_old_for_the_cluster_is_refused():
    old = [broker_registration.Feature(name=METADATA_VERSION, min_supported_version=7, max_supported_version=29)]
    with pytest.raises(UnsupportedVersion):
        register(cluster([1]), request(features=old))


def test_a_controller_tells_where_it_listens():
    asked = ControllerRegistrationRequest(
        controller_id=3,
        incarnation_id=LIFE,
        zk_migration_ready=False,
        listeners=[controller_registration.Listener(name="CONTROLLER", host="h", port=9093, security_protocol=0)],
        features=[
            controller_registration.Feature(name=METADATA_VERSION, min_supported_version=7, max_supported_version=30)
        ],
    )
    image = cluster([1])
    assert after(image, decide_controller_registration(image, asked)).controllers[3].endpoints[0].port == 9093
    with pytest.raises(UnsupportedVersion):
        decide_controller_registration(cluster([1], level=14), asked)
