"""Requests about voters (KIP-853) on real nodes: AddRaftVoter in whatever time, UpdateRaftVoter from whom it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.broker.test_quorum_cluster import FAST, Dynamic, active, adding, ask_active, play

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.update_raft_voter import (
    KRaftVersionFeature,
    Listener,
    UpdateRaftVoterRequest,
)

if TYPE_CHECKING:
    from millstream.testing.cluster import SimulatedCluster

LONGEST = 2**31 - 1


def updating(cluster: SimulatedCluster, number: int, **other: object) -> UpdateRaftVoterRequest:
    """What the voter would say of itself after it has moved to another port; `other` says something else."""
    leader, node = active(cluster), cluster.nodes[number].node
    assert leader is not None
    assert leader.node is not None
    assert node is not None
    says: dict[str, object] = {
        "cluster_id": cluster.cluster_id,
        "current_leader_epoch": leader.node.controller.log.epoch,
        "voter_id": number,
        "voter_directory_id": node.storage.metadata_directory_id,
        "listeners": [Listener(name="CONTROLLER", host=f"node-{number}", port=9193)],
        "k_raft_version_feature": KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    }
    return UpdateRaftVoterRequest(**(says | other))  # type: ignore[arg-type]


def test_a_voter_is_added_though_there_is_all_the_time_in_the_world() -> None:
    """Bug 51, KAFKA-13126."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        request = adding(cluster, 4)
        request.timeout_ms = LONGEST
        assert (await ask_active(cluster, request)).error_code == ErrorCode.NONE

    Dynamic(seed=8, nodes=4, settings=FAST).run(scenario)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_voter_is_added_within_the_quorums_time_where_the_request_gives_none(timeout_ms: int) -> None:
    """As Apache Kafka does, which takes `controller.quorum.request.timeout.ms` whatever the request says."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        request = adding(cluster, 4)
        request.timeout_ms = timeout_ms
        assert (await ask_active(cluster, request)).error_code == ErrorCode.NONE

    Dynamic(seed=8, nodes=4, settings=FAST).run(scenario)


def test_a_voter_is_updated_only_by_who_knows_the_quorum_and_itself() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        leader = active(cluster)
        assert leader is not None
        assert leader.node is not None
        quorum = leader.node.controller.log.quorum
        number = next(each for each in quorum.voters.ids() if each != leader.id)

        async def answer(**other: object) -> ErrorCode:
            return ErrorCode((await ask_active(cluster, updating(cluster, number, **other))).error_code)

        def port() -> int:
            voter = quorum.voters.find(number)
            assert voter is not None
            return voter.endpoints[0].port

        assert await answer(cluster_id="another") is ErrorCode.INCONSISTENT_CLUSTER_ID
        assert await answer(current_leader_epoch=quorum.epoch - 1) is ErrorCode.FENCED_LEADER_EPOCH
        assert await answer(current_leader_epoch=quorum.epoch + 1) is ErrorCode.UNKNOWN_LEADER_EPOCH
        assert await answer(voter_directory_id=cluster.directory_of(9)) is ErrorCode.VOTER_NOT_FOUND  # type: ignore[attr-defined]
        assert await answer(voter_id=9) is ErrorCode.VOTER_NOT_FOUND
        assert port() == 9093, "nothing has changed so far"
        assert await answer() is ErrorCode.NONE
        assert port() == 9193

    play(Dynamic(seed=9, nodes=3, settings=FAST), scenario)
