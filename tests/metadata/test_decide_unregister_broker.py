"""UnregisterBroker: only who is gone is forgotten."""

from __future__ import annotations

import pytest
from tests.metadata.clusters import after, cluster, fence, topic, with_topics

from millstream.metadata.broker_lifecycle import BrokerIdNotRegistered
from millstream.metadata.decide_unregister_broker import decide_unregister_broker
from millstream.protocol.errors import InvalidRequest
from millstream.protocol.messages.unregister_broker import UnregisterBrokerRequest


def test_a_dead_broker_is_forgotten_and_leads_nothing():
    image = fence(with_topics(cluster([1, 2]), topic("t", assigned={0: [2, 1]})), 2)
    now = after(image, decide_unregister_broker(image, UnregisterBrokerRequest(broker_id=2)))
    assert list(now.brokers) == [1]
    partition = now.topics.by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.replicas) == (1, (1,), (2, 1))


def test_an_active_broker_is_not_forgotten():
    with pytest.raises(InvalidRequest, match="Broker 1 is active; stop it before it is unregistered"):
        decide_unregister_broker(cluster([1]), UnregisterBrokerRequest(broker_id=1))


def test_a_stranger_is_not_registered():
    with pytest.raises(BrokerIdNotRegistered, match="No broker 9 is registered"):
        decide_unregister_broker(cluster([1]), UnregisterBrokerRequest(broker_id=9))
