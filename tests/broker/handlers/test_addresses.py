"""A client is told an address that it can reach."""

from __future__ import annotations

import pytest
from tests.support.raw import RawClient

from millstream.embedded import Broker
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from millstream.protocol.messages.describe_cluster import DescribeClusterRequest
from millstream.protocol.messages.metadata_api import MetadataRequest


def told_by(host: str, port: int) -> list[tuple[str, int]]:
    with RawClient(host, port) as client:
        answers = [
            client.call(MetadataRequest(topics=[]), 12),
            client.call(DescribeClusterRequest(include_cluster_authorized_operations=False), 1),
        ]
    addresses = [[(broker.host, broker.port) for broker in answer.brokers] for answer in answers]
    assert addresses[0] == addresses[1]
    return addresses[0]


@pytest.mark.parametrize("dialled", ["127.0.0.1", "127.0.0.2"])
def test_without_advertised_listeners_it_is_the_one_that_was_dialled(dialled):
    with Broker(host="0.0.0.0") as broker:
        assert told_by(dialled, broker.port) == [(dialled, broker.port)]


def test_an_advertised_listener_is_told_to_everyone():
    with Broker(settings={"advertised.listeners": "PLAINTEXT://broker.example:19092"}) as broker:
        assert told_by("127.0.0.1", broker.port) == [("broker.example", 19092)]


def test_each_listener_has_its_own():
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "advertised.listeners": "INSIDE://inside.example:1,OUTSIDE://outside.example:2",
    }
    with Broker(settings=settings) as broker:
        told = {each.name: told_by("127.0.0.1", each.port) for each in broker._running.listeners}
    assert told == {"INSIDE": [("inside.example", 1)], "OUTSIDE": [("outside.example", 2)]}


def test_a_controller_listener_tells_of_controllers():
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
    }
    with Broker(settings=settings) as broker:
        node = broker._running
        (listener,) = (each for each in node.listeners if each.is_controller)
        with RawClient("127.0.0.1", listener.port) as client:
            answer = client.call(
                DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2), 1
            )
            assert (answer.error_code, answer.endpoint_type, answer.controller_id) == (0, 2, node.node_id)
            assert [(each.broker_id, each.port) for each in answer.brokers] == [(node.node_id, listener.port)]
            mismatch = client.call(
                DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=1), 1
            )
            assert mismatch.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
            block = client.call(AllocateProducerIdsRequest(broker_id=node.node_id, broker_epoch=node.broker_epoch), 0)
            assert (block.error_code, block.producer_id_len) == (0, 1000)
            stale = client.call(AllocateProducerIdsRequest(broker_id=node.node_id, broker_epoch=-7), 0)
            assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
