"""What nodes of Apache Kafka mind and ours don't: found by listening to a mixed cluster (docs/mixed-clusters.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.broker.replica_scene import TOPIC, Scene, play

from millstream.protocol.codec import decode
from millstream.protocol.frames import decode_request_header
from millstream.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from millstream.testing.network import NoPulse

if TYPE_CHECKING:
    import pytest


def test_the_first_answer_of_a_followers_session_names_every_partition() -> None:
    """Although it waited and nothing came: a follower of Apache Kafka would give up the session."""

    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3], [1, 3, 2])
        partitions = [
            FetchPartition(partition=index, fetch_offset=0, log_start_offset=0, partition_max_bytes=1 << 20)
            for index in (0, 1)
        ]
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=2, replica_epoch=scene.node(2).broker_epoch),
            max_wait_ms=300,
            min_bytes=1,
            session_epoch=0,
            topics=[FetchTopic(topic_id=scene.node(1).image.topics.by_name[TOPIC].id, partitions=partitions)],
        )
        first = await scene.ask(1, request, 17)
        assert first.session_id > 0
        assert [part.partition_index for topic in first.responses for part in topic.partitions] == [0, 1]
        request.session_id, request.session_epoch, request.topics = first.session_id, 1, []
        second = await scene.ask(1, request, 17)
        assert second.responses == [], "from then on, only what is new"

    play(scenario)


def test_what_is_repeated_for_a_broker_that_stops_says_that_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the broker would be unfenced again by its own heartbeat, after it was told that it may stop."""
    repeated: dict[int, BrokerHeartbeatRequest] = {}

    def beat(_pulse: NoPulse, _addresses: object, frame: bytes) -> None:
        _, version, _, _, position = decode_request_header(frame[4:])
        request = decode(BrokerHeartbeatRequest, version, frame[4:], position)
        repeated[request.broker_id] = request

    monkeypatch.setattr(NoPulse, "beat", beat)

    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.until(lambda: 2 in repeated, "a heartbeat that could be repeated")
        assert not repeated[2].want_shut_down
        await scene.cluster.nodes[2].shut_down()
        assert repeated[2].want_shut_down
        assert scene.node(1).image.brokers[2].fenced

    play(scenario)
