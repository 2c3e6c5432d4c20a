"""A request's own `timeout_ms`: REQUEST_TIMED_OUT when it has passed, whatever the controllers do; on virtual time.

What Apache Kafka answers to timeouts of 0 and less is in tests/broker/handlers (`no_time`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from millstream.broker.dispatch import load_handlers
from millstream.broker.forwarding import FORWARD_TIMEOUT_MS
from millstream.broker.request_timeouts import timed_out, within_timeout
from millstream.protocol.apis import api
from millstream.protocol.codec import decode, encode
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.add_raft_voter import AddRaftVoterRequest
from millstream.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from millstream.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from millstream.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from millstream.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from millstream.protocol.uuid import ZERO_UUID
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.loop import VirtualLoop

if TYPE_CHECKING:
    from millstream.client.client import Client
    from millstream.testing.simulated_node import SimulatedNode

TOPIC = "t"
# Virtual seconds that a request and its response are under way, both hops; nothing of it is the timeout's.
UNDER_WAY_S = 0.1
SLOW_TO_RESIGN = {
    "offsets.topic.num.partitions": "1",
    "controller.quorum.fetch.timeout.ms": "20000",
    "broker.session.timeout.ms": "60000",
}


def created(name: str, timeout_ms: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    return CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)


def each_request(timeout_ms: int) -> list[Any]:
    """One of each kind that a client sends to the controller with a timeout; on a `TOPIC` of one partition."""
    move = ReassignablePartition(partition_index=0, replicas=[1, 2])
    return [
        created("new", timeout_ms),
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=TOPIC, count=2, assignments=None)],
            timeout_ms=timeout_ms,
            validate_only=False,
        ),
        ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=TOPIC, partitions=[0])], timeout_ms=timeout_ms),
        AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=TOPIC, partitions=[move])], timeout_ms=timeout_ms
        ),
        UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=1)], timeout_ms=timeout_ms
        ),
        DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC, topic_id=ZERO_UUID)], timeout_ms=timeout_ms),
    ]


def error_codes(response: Any) -> set[ErrorCode]:
    if isinstance(response, list):
        return set().union(*map(error_codes, response))
    found: set[ErrorCode] = set()
    for name in getattr(response, "__struct_fields__", ()):
        value = getattr(response, name)
        found |= {ErrorCode(value)} if name == "error_code" else error_codes(value)
    return found


def test_every_request_with_a_timeout_that_goes_to_the_controller_can_time_out() -> None:
    requests = [
        *each_request(1000),
        ListPartitionReassignmentsRequest(timeout_ms=1000),
        AddRaftVoterRequest(cluster_id="", voter_id=1, voter_directory_id=ZERO_UUID, listeners=[], timeout_ms=1000),
    ]
    forwarded = [handling for handling in load_handlers().values() if handling.forwards]
    assert {type(request) for request in requests} == {
        handling.request for handling in forwarded if "timeout_ms" in handling.request.__struct_fields__
    }
    for handling in forwarded:
        for request in requests:
            if type(request) is handling.request:
                kind = api(handling.api_key).response
                for version in range(handling.served.first, handling.served.last + 1):
                    heard = decode(kind, version, encode(timed_out(request), version))
                    assert ErrorCode.REQUEST_TIMED_OUT in error_codes(heard), handling.name


# --- alone, on virtual time


def test_what_takes_longer_than_the_timeout_is_called_off_then() -> None:
    called_off: list[float] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()

        async def never() -> None:
            try:
                await loop.create_future()
            finally:
                called_off.append(loop.time())

        began = loop.time()
        response: Any = await within_timeout(created("a", 1500), never)
        assert error_codes(response) == {ErrorCode.REQUEST_TIMED_OUT}
        assert called_off == [pytest.approx(began + 1.5)]

    VirtualLoop().run(scenario())


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_without_time_nothing_is_begun(timeout_ms: int) -> None:
    async def begun() -> None:
        pytest.fail("it was begun")

    async def scenario() -> None:
        for request in each_request(timeout_ms):
            if not isinstance(request, UpdateFeaturesRequest):
                response: Any = await within_timeout(request, begun)
                assert ErrorCode.REQUEST_TIMED_OUT in error_codes(response)

    VirtualLoop().run(scenario())


def test_what_the_client_may_not_change_does_not_time_out() -> None:
    async def refused() -> str:
        return "refused"

    async def scenario() -> None:
        growth = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=TOPIC, count=2, assignments=None)], timeout_ms=0, validate_only=False
        )
        by_name = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC, topic_id=ZERO_UUID)], timeout_ms=0)
        for request in (created(TOPIC, 0), growth, by_name):
            assert await within_timeout(request, refused, may_change=lambda _: False) == "refused"

    VirtualLoop().run(scenario())


def test_an_error_of_another_kind_of_timeout_is_not_taken_for_this_one() -> None:
    async def late() -> None:
        raise TimeoutError("a disk")

    async def scenario() -> None:
        with pytest.raises(TimeoutError, match="a disk"):
            await within_timeout(created("a", 1500), late)

    VirtualLoop().run(scenario())


# --- a cluster whose controllers have no majority


def active(cluster: SimulatedCluster) -> SimulatedNode:
    (found,) = [at for at in cluster.serving if at.node is not None and at.node.controller.is_active]
    return found


async def started(cluster: SimulatedCluster) -> Client:
    """A client that knows every broker, and `TOPIC`."""
    await cluster.start()
    client = cluster.client()
    await client.call(created(TOPIC, 10_000))
    await client.metadata.refresh_cluster()
    for number in cluster.nodes:
        await client.connection(number)
    return client


async def assert_times_out(cluster: SimulatedCluster, client: Client, node: int, request: Any) -> None:
    began_s = cluster.loop.time()
    response = await client.call(request, node=node, timeout_ms=request.timeout_ms)
    assert ErrorCode.REQUEST_TIMED_OUT in error_codes(response), (type(request).__name__, response)
    took_s = cluster.loop.time() - began_s
    assert 0 <= took_s - request.timeout_ms / 1000 < UNDER_WAY_S, (type(request).__name__, took_s)


def test_an_active_controller_that_cannot_commit_answers_in_time() -> None:
    """It leads for some more seconds, until it misses its followers' fetches."""

    async def scenario(cluster: SimulatedCluster) -> None:
        client = await started(cluster)
        leader = active(cluster)
        others = [host for host in cluster.hosts if host != leader.host]
        cluster.network.block([leader.host], others)
        for request in each_request(700):
            # Also what changes nothing waits for a commit: of the requests before it, which it may have seen.
            await assert_times_out(cluster, client, leader.id, request)
        assert leader.node is not None
        assert leader.node.controller.is_active, "it resigned before all was asked"
        cluster.network.heal()
        await client.close()

    SimulatedCluster(seed=5, nodes=3, settings=SLOW_TO_RESIGN).run(scenario)


def only_survivor(cluster: SimulatedCluster) -> SimulatedNode:
    """Kill all nodes but one, which is not the active controller."""
    survivor = next(at for at in cluster.serving if at is not active(cluster))
    for at in cluster.serving:
        if at is not survivor:
            at.kill()
    return survivor


def test_a_broker_answers_in_time_while_no_controller_is_active() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        client = await started(cluster)
        survivor = only_survivor(cluster)
        for request in (*each_request(2_500), ListPartitionReassignmentsRequest(timeout_ms=2_500)):
            await assert_times_out(cluster, client, survivor.id, request)
        await assert_times_out(cluster, client, survivor.id, created("again", 12_000))
        await client.close()

    SimulatedCluster(seed=6, nodes=3).run(scenario)


def test_who_has_more_time_than_clients_wait_is_sent_to_ask_again() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        client = await started(cluster)
        survivor = only_survivor(cluster)
        began_s = cluster.loop.time()
        response = await client.call(created("new", 60_000), node=survivor.id, timeout_ms=60_000)
        assert error_codes(response) == {ErrorCode.NOT_CONTROLLER}
        assert FORWARD_TIMEOUT_MS / 1000 - 1 < cluster.loop.time() - began_s < FORWARD_TIMEOUT_MS / 1000 + 1
        await client.close()

    SimulatedCluster(seed=7, nodes=3).run(scenario)


def test_a_request_that_times_out_takes_no_other_along() -> None:
    """Both are under way to the controller on one connection of the broker's, which must outlive the shorter one."""

    async def scenario(cluster: SimulatedCluster) -> None:
        client = await started(cluster)
        impatient = cluster.client()
        leader = active(cluster)
        broker = next(at for at in cluster.serving if at is not leader)
        await impatient.connection(broker.id)
        cluster.network.slow_down([broker.host], [leader.host], 0.3)
        answers = await asyncio.gather(
            client.call(created("patient", 15_000), node=broker.id, timeout_ms=15_000),
            impatient.call(created("hasty", 100), node=broker.id, timeout_ms=100),
        )
        assert [error_codes(answer) for answer in answers] == [{ErrorCode.NONE}, {ErrorCode.REQUEST_TIMED_OUT}]
        await client.close()
        await impatient.close()

    SimulatedCluster(seed=8, nodes=3).run(scenario)
