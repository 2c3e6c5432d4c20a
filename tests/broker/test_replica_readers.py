"""Reading and deleting where there are followers: the closest replica, deletions everywhere, moved coordinators."""

from __future__ import annotations

import asyncio

from tests.broker.replica_scene import TOPIC, Scene, play

from millstream.client.admin.topics import delete_records
from millstream.client.groups import Committed, commit_offsets, committed_offsets
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from millstream.security.operations import Operation

RACKS = {node_id: {"broker.rack": f"rack-{node_id}"} for node_id in (1, 2, 3)}
BY_RACK = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


def test_a_consumer_is_sent_to_the_replica_in_its_rack_and_reads_there() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a", "b")
        await scene.until(lambda: scene.partition(2).log.high_watermark == 2, "the follower knows the mark")
        answer = await scene.fetch(1, 0, rack="rack-2")
        assert (answer.preferred_read_replica, answer.records) == (2, b"")
        assert (await scene.fetch(1, 0, rack="rack-1")).preferred_read_replica == -1
        assert (await scene.fetch(1, 0, rack="elsewhere")).preferred_read_replica == -1
        there = await scene.fetch(2, 0, rack="rack-2")
        assert (there.error_code, there.high_watermark) == (ErrorCode.NONE, 2)
        assert there.records == scene.contents(1)

    play(scenario, settings=BY_RACK, settings_of=RACKS)


def test_a_follower_that_serves_readers_hears_of_the_mark_at_once() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a")
        await asyncio.sleep(3)
        waiting = asyncio.ensure_future(scene.fetch(2, 1, rack="rack-2", max_wait_ms=5_000))
        await asyncio.sleep(0.1)
        began = scene.cluster.loop.time()
        await scene.wrote(1, "b")
        answer = await waiting
        assert answer.records
        assert scene.cluster.loop.time() - began < 0.3

    play(scenario, settings=BY_RACK, settings_of=RACKS)


def test_a_follower_shows_nothing_above_its_mark() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a")
        log = scene.partition(2).log
        await scene.until(lambda: log.high_watermark == 1, "the follower knows the mark")
        scene.cluster.network.block(["node-3"], ["node-1"])
        await scene.wrote(1, "b", acks=1)
        await scene.until(lambda: log.end_offset == 2, "one follower has it, the other does not")
        answer = await scene.fetch(2, 1)
        assert (answer.error_code, answer.high_watermark, answer.records) == (ErrorCode.NONE, 1, b"")

    play(scenario, settings=BY_RACK, settings_of=RACKS)


def test_deleted_records_are_gone_on_all_replicas_when_it_is_answered() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a", "b", "c")
        client = scene.cluster.client()
        await delete_records(client, {(TOPIC, 0): 2})
        assert [scene.partition(member).log.start_offset for member in (1, 2, 3)] == [2, 2, 2]
        await client.close()

    play(scenario)


def test_records_of_a_quiet_partition_are_deleted_everywhere_and_stay_so() -> None:
    """Followers have heard everything of it by then, and must all the same hear this."""

    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a", "b", "c")
        await scene.same_everywhere(1, 2, 3)
        await asyncio.sleep(10)
        client = scene.cluster.client()
        began = scene.cluster.loop.time()
        await delete_records(client, {(TOPIC, 0): 2})
        assert [scene.partition(member).log.start_offset for member in (1, 2, 3)] == [2, 2, 2]
        # The followers' polls wait for half a second at most.
        assert scene.cluster.loop.time() - began < 1
        scene.cluster.nodes[1].kill()
        await scene.until(lambda: scene.state(2).leader in (2, 3), "another one leads")
        assert scene.partition(scene.state(2).leader).log.start_offset == 2
        await client.close()

    play(scenario)


def test_a_group_s_offsets_survive_the_loss_of_its_coordinator() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a", "b")
        client = scene.cluster.client()
        await commit_offsets(client, "readers", {(TOPIC, 0): Committed(1)})
        for node_id in (1, 2, 3):
            scene.cluster.nodes[node_id].kill()
            await scene.until(
                lambda node_id=node_id: all(  # type: ignore[misc]  # a default argument is its type
                    partition.leader != node_id
                    for partition in scene.node(node_id % 3 + 1)
                    .image.topics.by_name["__consumer_offsets"]
                    .partitions.values()
                ),
                "others coordinate",
            )
            offsets = await committed_offsets(client, "readers", [(TOPIC, 0)])
            assert offsets[TOPIC, 0].offset == 1
            await scene.cluster.nodes[node_id].restart()
            await scene.in_sync(1, 2, 3)
        await client.close()

    play(scenario, settings={"offsets.topic.num.partitions": "3", "offsets.topic.replication.factor": "3"})


def test_a_follower_needs_no_right_to_read_topics() -> None:
    """As in Kafka: whoever may act for the cluster may replicate."""

    class NobodyReads:
        def allows(self, principal: str, host: str, operation: Operation, *resource: object) -> bool:
            return operation is not Operation.READ

    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        for member in (1, 2, 3):
            scene.node(member).authorizer = NobodyReads()
        await scene.wrote(1, "a")
        assert (await scene.fetch(1, 0)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert scene.contents(2) == scene.contents(1) != b""

    play(scenario)


def test_a_follower_tells_who_wrote_to_its_replica() -> None:
    """KIP-664: `find-hanging --broker-id` asks one broker for all of its partitions, led or not."""

    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2])
        await scene.wrote(1, "a")
        await scene.same_everywhere(1, 2)
        request = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[0])])
        codes = {
            node_id: (await scene.ask(node_id, request, 0)).topics[0].partitions[0].error_code for node_id in (1, 2, 3)
        }
        assert codes == {1: ErrorCode.NONE, 2: ErrorCode.NONE, 3: ErrorCode.NOT_LEADER_OR_FOLLOWER}

    play(scenario)
