"""kraft.version 0 to 1 on real nodes: fixed voters become voters in the log, which then come and go like any others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.broker.test_quorum_cluster import (
    FAST,
    active,
    adding,
    ask_active,
    controllers,
    play,
    removing,
    topic_everywhere,
)

from millstream.client.admin.cluster import update_features
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.errors import Refusal
from millstream.metadata.features import KRAFT_VERSION
from millstream.protocol.errors import ErrorCode
from millstream.protocol.uuid import ZERO_UUID
from millstream.quorum.roles import Leader
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.layouts import separate

if TYPE_CHECKING:
    from millstream.client.client import Client


async def upgrade(cluster: SimulatedCluster, client: Client, *, validate_only: bool = False) -> None:
    """Once the active controller has heard from all voters."""

    def all_are_known() -> bool:
        leader = active(cluster)
        if leader is None or leader.node is None:
            return False
        quorum = leader.node.controller.log.quorum
        assert isinstance(quorum.role, Leader)
        return len(quorum.role.introduced) == len(quorum.voters) - 1

    await cluster.until(all_are_known, what="all voters have introduced themselves")
    await update_features(client, {KRAFT_VERSION: 1}, validate_only=validate_only)


def versions(cluster: SimulatedCluster) -> list[int]:
    return [controller.log.quorum.kraft_version for controller in controllers(cluster)]


def directories(cluster: SimulatedCluster) -> dict[int, object]:
    return {
        at.id: at.node.storage.metadata_directory_id
        for at in cluster.serving
        if at.node is not None and at.id in cluster.layout.controllers
    }


async def until_dynamic_everywhere(cluster: SimulatedCluster) -> None:
    await cluster.until(lambda: versions(cluster) == [1] * len(cluster.nodes), what="kraft.version is 1 everywhere")
    for controller in controllers(cluster):
        voters = controller.log.quorum.voters
        assert {voter.id: voter.directory_id for voter in voters} == directories(cluster)
        assert [[each.host for each in voter.endpoints] for voter in voters] == [
            [f"node-{id_}"] for id_ in voters.ids()
        ]


@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_fixed_voters_become_voters_in_the_log(nodes: int) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await upgrade(cluster, client, validate_only=True)
        assert versions(cluster) == [0] * nodes
        await upgrade(cluster, client)
        await until_dynamic_everywhere(cluster)
        await update_features(client, {KRAFT_VERSION: 1})
        for downgrade in (True, False):
            with pytest.raises(Refusal) as refusal:
                await update_features(client, {KRAFT_VERSION: 0}, downgrade=downgrade)
            assert refusal.value.code is ErrorCode.INVALID_UPDATE_VERSION
        for controller in controllers(cluster):
            await controller.snapshot()
        for node in cluster.nodes.values():
            await node.shut_down()
        await cluster.start()
        await until_dynamic_everywhere(cluster)
        await topic_everywhere(cluster, "after")
        await client.close()

    play(SimulatedCluster(seed=nodes, nodes=nodes, settings=FAST), scenario)


def test_voters_come_and_go_after_the_upgrade_and_an_empty_disk_is_noticed() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await upgrade(cluster, client)
        await until_dynamic_everywhere(cluster)
        leader = active(cluster)
        assert leader is not None
        assert (await ask_active(cluster, removing(cluster, leader.id))).error_code == ErrorCode.NONE
        await cluster.until(lambda: active(cluster) not in (None, leader), what="one of the others leads")
        await topic_everywhere(cluster, "known-to-all-who-leads")
        assert (await ask_active(cluster, adding(cluster, leader.id))).error_code == ErrorCode.NONE
        wiped = next(at for at in cluster.serving if at is not active(cluster) and at.id in cluster.layout.controllers)
        wiped.lose_disk()
        await wiped.restart()
        assert wiped.node is not None
        assert not wiped.node.controller.log.quorum.is_voter
        await client.close()

    # Without the checker, for which a node is the same with another disk, and goes back in time.
    SimulatedCluster(seed=3, layout=separate(2), settings=FAST).run(scenario)


def test_a_voter_that_is_away_keeps_the_quorum_static() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        away = next(at for at in cluster.serving if at is not active(cluster))
        away.kill()
        leader = active(cluster)
        assert leader is not None
        leader.kill()
        leader.boot()
        await cluster.until(lambda: active(cluster) is not None, what="the two that are left elect a leader")
        with pytest.raises(Refusal, match=f"heard from {away.id}|heard from .*{away.id}") as refusal:
            await update_features(client, {KRAFT_VERSION: 1})
        assert refusal.value.code is ErrorCode.INVALID_UPDATE_VERSION
        away.boot()
        await upgrade(cluster, client)
        await until_dynamic_everywhere(cluster)
        await client.close()

    play(SimulatedCluster(seed=12, nodes=3, settings=FAST), scenario)


@pytest.mark.parametrize("by_snapshot", [False, True])
def test_an_upgrade_that_was_never_committed_is_forgotten(by_snapshot: bool) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await upgrade(cluster, client, validate_only=True)
        alone = active(cluster)
        assert alone is not None
        assert alone.node is not None
        others = [at for at in cluster.nodes.values() if at is not alone]
        cluster.network.block([alone.host], [at.host for at in others])
        alone.node.controller.voter_changes.upgrade()
        quorum = alone.node.controller.log.quorum
        assert quorum.kraft_version == 1
        await cluster.until(lambda: active(cluster) not in (None, alone), what="another one leads")
        for name in ("one", "two"):
            await create_topics(client, [NewTopic(name, partitions=1, replicas=1)])
            for at in others:
                assert at.node is not None
                if by_snapshot:
                    await at.node.controller.snapshot()
        cluster.network.heal()
        await cluster.until(
            lambda: alone.node is not None and "two" in alone.node.image.topics.by_name, what="it has caught up"
        )
        assert versions(cluster) == [0, 0, 0]
        assert (alone.node.controller.log.log.start_offset > 0) == by_snapshot
        assert all(voter.directory_id == ZERO_UUID for voter in quorum.voters)
        await upgrade(cluster, client)
        await until_dynamic_everywhere(cluster)
        await client.close()

    settings = {**FAST, "metadata.max.retention.bytes": "1" if by_snapshot else str(1 << 30)}
    play(SimulatedCluster(seed=5, nodes=3, settings=settings), scenario)
