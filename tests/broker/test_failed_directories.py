"""A log directory that fails: others lead what was in it, the rest of the broker goes on, and it comes back whole."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from tests.support.waiting import wait_until

from millstream import Broker
from millstream.client.admin import raise_first
from millstream.client.admin.cluster import describe_log_dirs
from millstream.client.admin.topics import NewTopic, create_topics, delete_topics
from millstream.client.offsets import LATEST, list_offsets
from millstream.client.produce import produce
from millstream.client.sync import SyncClient
from millstream.log.directory import LogDirectory
from millstream.protocol.errors import ErrorCode
from millstream.protocol.uuid import DIRECTORY_LOST
from millstream.records.building import encode_batch
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.simulation import base_settings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from millstream.broker.node import Node
    from millstream.log.log import Log
    from millstream.metadata.image import PartitionImage
    from millstream.testing.disk import LossyDisk

BATCH = bytes(encode_batch([(None, b"value", (), 1_700_000_000_000)]))
TWO_DIRECTORIES = {"log.dirs": "/data,/more"}


def break_writes(disk: LossyDisk, part_of_path: str, number: int = errno.EIO) -> None:
    def fail(what: str) -> None:
        if part_of_path in what:
            raise OSError(number, "the disk is gone", what)

    disk.on_step = fail


def node_of(cluster: SimulatedCluster, number: int) -> Node:
    node = cluster.nodes[number].node
    assert node is not None
    return node


def partitions_of(cluster: SimulatedCluster, asked: int, topic: str) -> dict[int, PartitionImage]:
    found = node_of(cluster, asked).image.topics.by_name.get(topic)
    return {} if found is None else dict(found.partitions)


def kept_in(node: Node, path: str, topic: str) -> set[int]:
    (directory,) = (each for each in node.log_directories if each.path == path)
    return {index for name, index in directory.logs if name == topic}


def everywhere(topic: str, count: int) -> NewTopic:
    return NewTopic(topic, assignments=dict.fromkeys(range(count), (1, 2, 3)))


async def all_are_assigned(cluster: SimulatedCluster, topic: str) -> None:
    def hold() -> bool:
        held = node_of(cluster, 1).partitions
        return all(
            (hosted := held.get(topic, index)) is not None
            and hosted.leader is not None
            and len(state.isr) == 3
            and all(place in node_of(cluster, 1).image.brokers[1].log_dirs for place in state.directories[:1])
            for index, state in partitions_of(cluster, 1, topic).items()
        )

    await cluster.until(lambda: bool(partitions_of(cluster, 1, topic)) and hold(), what="everything has its place")


def test_others_lead_what_was_in_a_directory_that_failed_until_it_is_back() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await create_topics(client, [everywhere("orders", 6)])
        await all_are_assigned(cluster, "orders")
        first = node_of(cluster, 1)
        lost, kept = kept_in(first, "/more", "orders"), kept_in(first, "/data", "orders")
        assert len(lost) == len(kept) == 3
        disk = cluster.nodes[1].disk
        break_writes(disk, "/more/")
        # One write finds it out, and all partitions of the directory go.
        await produce(client, {("orders", min(lost)): BATCH})

        def are_led_by_others() -> bool:
            states = partitions_of(cluster, 2, "orders")
            return all(states[index].leader in (2, 3) and 1 not in states[index].isr for index in lost)

        await cluster.until(are_led_by_others, within_s=10, what="others lead")
        states = partitions_of(cluster, 2, "orders")
        assert all(states[index].leader == 1 and 1 in states[index].isr for index in kept)
        await produce(client, {("orders", index): BATCH for index in range(6)})
        registered = node_of(cluster, 2).image.brokers[1]
        assert not registered.fenced
        assert len(registered.log_dirs) == 1
        described = raise_first(await describe_log_dirs(client, [1]))[1]
        codes = {found.log_dir: found.error_code for found in described}
        assert codes == {"/data": ErrorCode.NONE, "/more": ErrorCode.KAFKA_STORAGE_ERROR}

        await create_topics(client, [everywhere("later", 4)])
        await all_are_assigned(cluster, "later")
        assert kept_in(first, "/data", "later") == {0, 1, 2, 3}

        await cluster.nodes[1].shut_down()
        disk.on_step = None
        await cluster.nodes[1].restart()
        await cluster.until(
            lambda: all(len(state.isr) == 3 for state in partitions_of(cluster, 2, "orders").values()),
            what="the disk is back, and everything on it in sync",
        )
        assert kept_in(node_of(cluster, 1), "/more", "orders") == lost
        await client.close()

    settings = base_settings(3) | TWO_DIRECTORIES | {"auto.leader.rebalance.enable": "false"}
    SimulatedCluster(1, settings=settings).run(scenario)


def test_what_one_directory_does_not_take_goes_into_another() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        break_writes(cluster.nodes[1].disk, "/more/", errno.ENOTDIR)
        await create_topics(client, [everywhere("orders", 6)])
        await all_are_assigned(cluster, "orders")
        assert kept_in(node_of(cluster, 1), "/data", "orders") == set(range(6))
        await produce(client, {("orders", index): BATCH for index in range(6)})
        cluster.nodes[1].disk.on_step = None
        await client.close()

    settings = base_settings(3) | TWO_DIRECTORIES | {"auto.leader.rebalance.enable": "false"}
    SimulatedCluster(1, settings=settings).run(scenario)


def test_others_lead_a_partition_whose_log_could_not_be_made() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        break_writes(cluster.nodes[1].disk, "/data/orders-1/")
        await create_topics(client, [everywhere("orders", 3)])

        def is_led_by_another() -> bool:
            state = partitions_of(cluster, 2, "orders").get(1)
            return state is not None and state.leader in (2, 3) and state.directory_of(1) == DIRECTORY_LOST

        await cluster.until(is_led_by_another, within_s=10, what="another one leads")
        await produce(client, {("orders", index): BATCH for index in range(3)})
        states = partitions_of(cluster, 2, "orders")
        assert [states[index].leader for index in (0, 2)] == [1, 1]
        cluster.nodes[1].disk.on_step = None
        await cluster.nodes[1].shut_down()
        await cluster.nodes[1].restart()
        await cluster.until(
            lambda: all(len(state.isr) == 3 for state in partitions_of(cluster, 2, "orders").values()),
            what="the log is made at the next start",
        )
        await client.close()

    settings = base_settings(3) | {"auto.leader.rebalance.enable": "false"}
    SimulatedCluster(1, settings=settings).run(scenario)


def test_the_only_replicas_in_a_failed_directory_have_no_leader_until_it_is_back() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await create_topics(client, [NewTopic("orders", partitions=4)])
        await produce(client, {("orders", index): BATCH for index in range(4)})
        node = node_of(cluster, 1)
        ids = {directory.id for directory in node.log_directories}
        await cluster.until(
            lambda: all(set(state.directories) <= ids for state in partitions_of(cluster, 1, "orders").values())
        )
        lost = kept_in(node, "/more", "orders")
        break_writes(cluster.nodes[1].disk, "/more/")
        await cluster.until(
            # Nobody writes to it: the checkpoint that is written every few seconds finds it out.
            lambda: {i for i, state in partitions_of(cluster, 1, "orders").items() if state.leader == -1} == lost,
            what="nobody leads what is lost",
        )
        assert not node.failed.done()
        # The next start finds the same.
        for _ in range(2):
            await cluster.nodes[1].shut_down()
            await cluster.nodes[1].restart()
            assert node_of(cluster, 1).partitions.led_count == 4 - len(lost)
        await cluster.nodes[1].shut_down()
        cluster.nodes[1].disk.on_step = None
        await cluster.nodes[1].restart()
        await cluster.until(lambda: node_of(cluster, 1).partitions.led_count == 4, what="all are led again")
        ends = await list_offsets(client, {("orders", index): LATEST for index in range(4)})
        assert [found.offset for found in ends.values()] == [1, 1, 1, 1]
        await client.close()

    SimulatedCluster(1, nodes=1, settings=TWO_DIRECTORIES).run(scenario)


def test_a_new_topic_of_an_old_name_has_nothing_to_do_with_what_a_failed_directory_holds() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await create_topics(client, [NewTopic("orders", partitions=6)])
        await produce(client, {("orders", index): BATCH for index in range(6)})
        node = node_of(cluster, 1)
        break_writes(cluster.nodes[1].disk, "/more/")
        await cluster.until(lambda: node.partitions.offline_count == 2, what="a third of them is offline")
        assert await delete_topics(client, ["orders"]) == {"orders": None}
        await create_topics(client, [NewTopic("orders", partitions=6)])
        await produce(client, {("orders", index): BATCH for index in range(6)})
        await cluster.nodes[1].shut_down()
        cluster.nodes[1].disk.on_step = None
        await cluster.nodes[1].restart()
        assert node_of(cluster, 1).partitions.offline_count == 0
        assert not kept_in(node_of(cluster, 1), "/more", "orders")
        ends = await list_offsets(client, {("orders", index): LATEST for index in range(6)})
        assert {found.offset for found in ends.values()} == {1}
        await client.close()

    SimulatedCluster(1, nodes=1, settings={"log.dirs": "/data,/more,/third"}).run(scenario)


def test_a_directory_that_fails_while_its_logs_are_opened_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def folders(cluster: SimulatedCluster) -> list[str]:
        return [name for name in cluster.nodes[1].disk.list_directory("/more") if name.startswith("orders-")]

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await create_topics(client, [NewTopic("orders", partitions=6)])
        await produce(client, {("orders", index): BATCH for index in range(6)})
        before = folders(cluster)
        broken = sorted(kept_in(node_of(cluster, 1), "/more", "orders"))[1]
        await cluster.nodes[1].shut_down()
        real = LogDirectory.open_or_create

        def failing(directory: LogDirectory, topic: str, partition: int, *rest: Any) -> Log:
            if (topic, partition) == ("orders", broken):
                raise OSError(errno.EIO, "a sector cannot be read")
            return real(directory, topic, partition, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(LogDirectory, "open_or_create", failing)
            await cluster.nodes[1].restart()
            node = node_of(cluster, 1)
            await cluster.until(lambda: node.partitions.offline_count == 3, what="half of them are offline")
            await cluster.nodes[1].shut_down()
        assert folders(cluster) == before
        await cluster.nodes[1].restart()
        await cluster.until(lambda: node_of(cluster, 1).partitions.led_count == 6, what="all are led again")
        ends = await list_offsets(client, {("orders", index): LATEST for index in range(6)})
        assert {found.offset for found in ends.values()} == {1}
        await client.close()

    SimulatedCluster(1, nodes=1, settings=TWO_DIRECTORIES).run(scenario)


def test_a_full_disk_takes_no_directory_offline() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        node = node_of(cluster, 1)
        break_writes(cluster.nodes[1].disk, "/more/", errno.ENOSPC)
        await node.maintenance.checkpoint_high_watermarks()
        assert [directory.failure for directory in node.log_directories] == [None, None]
        break_writes(cluster.nodes[1].disk, "/data/replication-offset-checkpoint")
        await node.maintenance.checkpoint_high_watermarks()
        # The metadata is in this one.
        assert [directory.failure for directory in node.log_directories] == [None, None]
        cluster.nodes[1].disk.on_step = None

    SimulatedCluster(1, nodes=1, settings=TWO_DIRECTORIES).run(scenario)


def test_a_broker_starts_without_a_directory_that_cannot_be_opened(tmp_path: Path) -> None:
    directories = ",".join(str(tmp_path / name) for name in ("one", "two"))
    settings = {"log.dirs": directories}

    def ends(client: SyncClient, indexes: set[int]) -> list[int]:
        return [
            found.offset
            for found in client.run(list_offsets, {("orders", index): LATEST for index in indexes}).values()
        ]

    with Broker(settings=settings) as broker, SyncClient({"bootstrap.servers": broker.bootstrap_servers}) as client:
        broker.create_topic("orders", partitions=4)
        client.run(produce, {("orders", index): BATCH for index in range(4)})
        node = broker._running
        lost = kept_in(node, str(tmp_path / "two"), "orders")
        ids = {directory.id for directory in node.log_directories}
        wait_until(
            lambda: all(
                set(state.directories) <= ids for state in node.image.topics.by_name["orders"].partitions.values()
            ),
            "the controller knows where every replica lives",
        )
    (tmp_path / "two").rename(tmp_path / "away")
    (tmp_path / "two").touch()
    with Broker(settings=settings) as broker, SyncClient({"bootstrap.servers": broker.bootstrap_servers}) as client:
        assert ends(client, set(range(4)) - lost) == [1] * (4 - len(lost))
        states = broker._running.image.topics.by_name["orders"].partitions
        assert {index for index, state in states.items() if state.leader == -1} == lost
        (described,) = raise_first(client.run(describe_log_dirs, [broker._running.node_id])).values()
        assert [found.error_code for found in described] == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
        broker.create_topic("later", partitions=2)
        client.run(produce, {("later", index): BATCH for index in range(2)})
    (tmp_path / "two").unlink()
    (tmp_path / "away").rename(tmp_path / "two")
    with Broker(settings=settings) as broker, SyncClient({"bootstrap.servers": broker.bootstrap_servers}) as client:
        assert ends(client, set(range(4))) == [1, 1, 1, 1]
