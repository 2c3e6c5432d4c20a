"""Three real nodes on virtual time, and a tester that talks to each of them by name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.support.batches import Record, batch_of

from millstream.broker.peers import Peers
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.testing.cluster import CLIENT_PORT, SimulatedCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from millstream.broker.node import Node
    from millstream.broker.partition import Partition
    from millstream.metadata.image import PartitionImage
    from millstream.protocol.messages.fetch import PartitionData
    from millstream.protocol.messages.produce import PartitionProduceResponse

TOPIC = "orders"
TIMEOUT_MS = 30_000


class Scene:
    """A cluster that has started, with one topic whose replicas are in the order given: the first one leads."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.peers = Peers(cluster.network.at("tester"), "tester")

    def node(self, node_id: int) -> Node:
        found = self.cluster.nodes[node_id].node
        assert found is not None
        return found

    def partition(self, node_id: int, index: int = 0, topic: str = TOPIC) -> Partition:
        found = self.node(node_id).partitions.get(topic, index)
        assert found is not None, f"node {node_id} does not host {topic}-{index}"
        return found

    def state(self, seen_by: int = 1, index: int = 0, topic: str = TOPIC) -> PartitionImage:
        """The partition as the metadata of that node have it."""
        return self.node(seen_by).image.topics.by_name[topic].partitions[index]

    def contents(self, node_id: int, index: int = 0) -> bytes:
        log = self.partition(node_id, index).log
        return log.read(log.start_offset, 1 << 30, log.end_offset, at_least_one_batch=True) or b""

    async def ask(self, node_id: int, request: object, version: int, *, timeout_ms: int = TIMEOUT_MS) -> Any:
        peer = self.peers.at(f"node-{node_id}", CLIENT_PORT, f"{id(asyncio.current_task())}")
        return await peer.ask(request, version=version, timeout_ms=timeout_ms)

    async def until(self, condition: Callable[[], bool], what: str, *, within_s: float = 60) -> None:
        await self.cluster.until(condition, what=what, within_s=within_s)

    async def create(
        self, *partitions: list[int], topic: str = TOPIC, configs: Mapping[str, str] | None = None
    ) -> None:
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=topic,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
                        for index, replicas in enumerate(partitions)
                    ],
                    configs=[CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()],
                )
            ],
            timeout_ms=TIMEOUT_MS,
        )
        answer = await self.ask(1, request, 7)
        assert answer.topics[0].error_code == ErrorCode.NONE, answer
        for index, replicas in enumerate(partitions):
            await self.until(
                lambda index=index, replicas=replicas: (
                    all(  # type: ignore[misc]  # a default argument is its type
                        self.hosts(member, index, topic) for member in replicas
                    )
                    and self.partition(replicas[0], index, topic).leader is not None
                ),
                f"{topic}-{index} is there",
            )

    def hosts(self, node_id: int, index: int = 0, topic: str = TOPIC) -> bool:
        return self.node(node_id).partitions.get(topic, index) is not None

    async def produce(
        self, node_id: int, *values: str, acks: int = -1, timeout_ms: int = 10_000, index: int = 0
    ) -> PartitionProduceResponse:
        """One batch to the node that is named, whoever leads."""
        batch = batch_of(*(Record(value.encode()) for value in values))
        data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=index, records=batch)])
        request = ProduceRequest(transactional_id=None, acks=acks, timeout_ms=timeout_ms, topic_data=[data])
        answer = await self.ask(node_id, request, 12, timeout_ms=timeout_ms + 10_000)
        result: PartitionProduceResponse = answer.responses[0].partition_responses[0]
        return result

    async def wrote(self, node_id: int, *values: str, acks: int = -1, index: int = 0) -> None:
        """The same, and it must succeed."""
        answer = await self.produce(node_id, *values, acks=acks, index=index)
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name

    async def fetch(self, node_id: int, offset: int, *, rack: str = "", max_wait_ms: int = 0) -> PartitionData:
        """What a consumer gets from that node."""
        topic_id = self.node(node_id).image.topics.by_name[TOPIC].id
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            topics=[FetchTopic(topic_id=topic_id, partitions=[wanted])],
            rack_id=rack,
        )
        answer = await self.ask(node_id, request, 17)
        result: PartitionData = answer.responses[0].partitions[0]
        return result

    async def in_sync(self, *members: int, within_s: float = 60) -> None:
        """Until the leader counts exactly these, and the metadata too."""

        def settled() -> bool:
            leads = self.state(members[0]).leader
            leader = self.partition(leads).leader
            return leader is not None and sorted(leader.isr) == sorted(members) == sorted(self.state(leads).isr)

        await self.until(settled, f"in sync are {members}", within_s=within_s)

    async def same_everywhere(self, *members: int) -> None:
        def same() -> bool:
            logs = [self.partition(member).log for member in members]
            return len({(log.end_offset, log.high_watermark) for log in logs}) == 1 and all(
                self.contents(member) == self.contents(members[0]) for member in members
            )

        await self.until(same, "all replicas hold the same")


def play(
    scenario: Callable[[Scene], Coroutine[Any, Any, None]],
    *,
    seed: int = 1,
    settings: Mapping[str, str] | None = None,
    settings_of: Mapping[int, Mapping[str, str]] | None = None,
) -> None:
    """Start three nodes and run the scenario."""
    cluster = SimulatedCluster(seed, nodes=3, settings=settings)
    for node_id, own in (settings_of or {}).items():
        cluster.nodes[node_id].settings.update(own)

    async def run(cluster: SimulatedCluster) -> None:
        await cluster.start()
        scene = Scene(cluster)
        try:
            await scenario(scene)
        finally:
            scene.peers.close()

    cluster.run(run)
