"""The metadata quorum of many nodes: the real nodes, on virtual time and a simulated network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.broker.storage_format import StorageLayout, format_storage
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.protocol.errors import ErrorCode, NotController
from millstream.protocol.messages import add_raft_voter
from millstream.protocol.messages.add_raft_voter import AddRaftVoterRequest
from millstream.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from millstream.protocol.uuid import Uuid
from millstream.quorum.roles import Follower
from millstream.quorum.voters import Voter, VoterEndpoint, VoterSet
from millstream.testing.cluster import CONTROLLER_PORT, SimulatedCluster
from millstream.testing.quorum_invariants import QuorumInvariants

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from millstream.broker.controller_node import ControllerNode
    from millstream.testing.simulated_node import SimulatedNode

FAST = {"metadata.log.max.snapshot.interval.ms": "0", "offsets.topic.num.partitions": "1"}


def play(cluster: SimulatedCluster, scenario: Callable[[SimulatedCluster], Coroutine[Any, Any, None]]) -> None:
    cluster.checkers.append(QuorumInvariants().look)
    cluster.run(scenario)


def controllers(cluster: SimulatedCluster) -> list[ControllerNode]:
    return [at.node.controller for at in cluster.serving if at.node is not None]


def active(cluster: SimulatedCluster) -> SimulatedNode | None:
    leading = [at for at in cluster.serving if at.node is not None and at.node.controller.is_active]
    return max(leading, key=lambda at: at.node.controller.log.epoch if at.node else -1, default=None)


async def topic_everywhere(cluster: SimulatedCluster, name: str, *, within_s: float = 30) -> None:
    """Create a topic through whoever answers, and wait until every node knows it."""
    client = cluster.client()
    await create_topics(client, [NewTopic(name, partitions=1, replicas=1)])
    await cluster.until(
        lambda: all(name in controller.image.topics.by_name for controller in controllers(cluster)),
        within_s=within_s,
        what=f"{name} is known everywhere",
    )
    await client.close()


@pytest.mark.parametrize("nodes", [3, 5])
def test_nodes_with_fixed_voters_elect_one_controller_and_agree(nodes: int) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        await topic_everywhere(cluster, "agreed")
        assert sum(controller.is_active for controller in controllers(cluster)) == 1
        leaders = {controller.leader() for controller in controllers(cluster)}
        assert len(leaders) == 1
        (leader,) = leaders
        assert leader is not None
        assert (leader.host, leader.port) == (f"node-{leader.id}", CONTROLLER_PORT)
        others = [controller for controller in controllers(cluster) if not controller.is_active]
        with pytest.raises(NotController, match=f"node {leader.id}"):
            await others[0].submit(lambda image, _: pytest.fail("a follower decided"))

    play(SimulatedCluster(seed=nodes, nodes=nodes, settings=FAST), scenario)


@pytest.mark.parametrize("how", ["killed", "stopped", "isolated", "told to stop"])
def test_another_controller_takes_over_from_one_that_is(how: str) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        await topic_everywhere(cluster, "before")
        first = active(cluster)
        assert first is not None
        others = [host for host in cluster.hosts if host != first.host]
        began_s = cluster.loop.time()
        if how == "killed":
            first.kill()
        elif how == "stopped":
            first.pause()
        elif how == "isolated":
            cluster.network.block([first.host], others)
            cluster.network.block(others, [first.host])
        else:
            await first.shut_down()
        await cluster.until(lambda: active(cluster) not in (None, first), what="another one leads", every_s=0.01)
        # Told or seen, it is quick; a silent one has to be missed first.
        assert cluster.loop.time() - began_s < (1.5 if how in ("killed", "told to stop") else 4.5)
        if how == "isolated":
            await cluster.until(lambda: first.node is not None and not first.node.controller.is_active)
            cluster.network.heal()
        elif how == "stopped":
            first.go_on()
        else:
            first.boot()
        await cluster.until(
            lambda: (
                first.node is not None
                and hasattr(first.node, "controller")
                and isinstance(first.node.controller.log.quorum.role, Follower)
            ),
            what="the old one follows",
        )
        await first.until_ready()
        await topic_everywhere(cluster, "after")

    play(SimulatedCluster(seed=11, nodes=3, settings=FAST), scenario)


class SeparateRoles(SimulatedCluster):
    """Nodes 1 to 3 are controllers only, the others brokers only."""

    def _settings_of(self, number: int, voters: str, settings: Any) -> dict[str, str]:
        made = super()._settings_of(number, "1@node-1:9093,2@node-2:9093,3@node-3:9093", settings)
        listeners = made["listeners"].split(",")
        if number <= 3:
            return {**made, "process.roles": "controller", "listeners": listeners[1]}
        return {**made, "process.roles": "broker", "listeners": listeners[0]}


def test_brokers_alone_follow_a_quorum_of_controllers_alone() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        first = active(cluster)
        assert first is not None
        broker = cluster.nodes[4].node
        assert broker is not None
        client = cluster.client(options={"bootstrap.servers": "node-4:9092,node-5:9092"})
        await create_topics(client, [NewTopic("one", partitions=1, replicas=2)])
        first.kill()
        await create_topics(client, [NewTopic("two", partitions=1, replicas=2)])
        await cluster.until(lambda: "two" in broker.image.topics.by_name)
        assert not broker.controller.is_active
        await client.close()

    play(SeparateRoles(seed=5, nodes=5, settings=FAST), scenario)


def test_a_node_that_was_away_for_long_takes_a_snapshot() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        await topic_everywhere(cluster, "one")
        leader = active(cluster)
        assert leader is not None
        assert leader.node is not None
        away = next(at for at in cluster.nodes.values() if at is not leader)
        away.kill()
        for name in ("two", "three"):
            await topic_everywhere(cluster, name)
            for controller in controllers(cluster):
                await controller.snapshot()
        assert all(controller.log.log.start_offset > 0 for controller in controllers(cluster))
        await away.restart()
        assert away.node is not None
        assert away.node.controller.log.log.start_offset > 0
        assert "three" in away.node.image.topics.by_name
        await topic_everywhere(cluster, "four")

    settings = {**FAST, "metadata.max.retention.bytes": "1"}
    play(SimulatedCluster(seed=2, nodes=3, settings=settings), scenario)


class Dynamic(SimulatedCluster):
    """A quorum whose voters stand in its log; at first they are nodes 1 to 3."""

    def directory_of(self, number: int) -> Uuid:
        return Uuid(bytes([0x40, number]) * 8)

    @property
    def first_voters(self) -> VoterSet:
        return VoterSet(
            tuple(
                Voter(number, self.directory_of(number), (VoterEndpoint("CONTROLLER", f"node-{number}", 9093),))
                for number in (1, 2, 3)
            )
        )

    def _settings_of(self, number: int, voters: str, settings: Any) -> dict[str, str]:
        made = super()._settings_of(number, voters, settings)
        del made["controller.quorum.voters"]
        return {**made, "controller.quorum.bootstrap.servers": "node-1:9093,node-2:9093,node-3:9093"}

    def format(self, node: SimulatedNode, layout: StorageLayout) -> None:
        is_first = node.id <= 3 and node.disks == 1
        format_storage(
            node.ports,
            layout,
            cluster_id=self.cluster_id,
            node_id=node.id,
            initial_voters=self.first_voters if is_first else None,
        )

    def voters_of(self, number: int) -> tuple[int, ...]:
        node = self.nodes[number].node
        assert node is not None
        return node.controller.log.quorum.voters.ids()


async def ask_active(cluster: SimulatedCluster, request: Any) -> Any:
    asking = cluster.nodes[next(iter(cluster.nodes))].node
    assert asking is not None
    leader = asking.controller.leader()
    assert leader is not None
    return await asking.peers.at(leader.host, leader.port, "test").ask(request, timeout_ms=10_000)


def adding(cluster: SimulatedCluster, number: int) -> AddRaftVoterRequest:
    node = cluster.nodes[number].node
    assert node is not None
    return AddRaftVoterRequest(
        cluster_id=cluster.cluster_id,
        timeout_ms=10_000,
        voter_id=number,
        voter_directory_id=node.storage.metadata_directory_id,
        listeners=[add_raft_voter.Listener(name="CONTROLLER", host=f"node-{number}", port=9093)],
    )


def removing(cluster: SimulatedCluster, number: int) -> RemoveRaftVoterRequest:
    node = cluster.nodes[number].node
    assert node is not None
    return RemoveRaftVoterRequest(
        cluster_id=cluster.cluster_id, voter_id=number, voter_directory_id=node.storage.metadata_directory_id
    )


def test_voters_come_and_go() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        assert isinstance(cluster, Dynamic)
        await cluster.start()
        assert cluster.voters_of(4) == (1, 2, 3)
        assert (await ask_active(cluster, adding(cluster, 4))).error_code == ErrorCode.NONE
        assert (await ask_active(cluster, adding(cluster, 4))).error_code == ErrorCode.DUPLICATE_VOTER
        await cluster.until(lambda: all(cluster.voters_of(number) == (1, 2, 3, 4) for number in cluster.nodes))
        leader = active(cluster)
        assert leader is not None
        assert (await ask_active(cluster, removing(cluster, leader.id))).error_code == ErrorCode.NONE
        await cluster.until(lambda: active(cluster) not in (None, leader), what="one of the others leads")
        again = await ask_active(cluster, removing(cluster, leader.id))
        assert again.error_code == ErrorCode.VOTER_NOT_FOUND
        await topic_everywhere(cluster, "after")
        left = tuple(number for number in cluster.nodes if number != leader.id)
        assert all(cluster.voters_of(number) == left for number in cluster.nodes)
        # The three that are left can lose one, and the one that was removed does not count.
        other = next(at for at in cluster.serving if at.id in left and at is not active(cluster))
        other.kill()
        await topic_everywhere(cluster, "with-two-of-three")
        await other.restart()
        assert cluster.voters_of(other.id) == left

    heard: list[str] = []
    quorum = Dynamic(seed=4, nodes=4, settings=FAST)
    quorum._remark = heard.append  # type: ignore[method-assign]
    play(quorum, scenario)
    assert any("even number of voters" in line for line in heard), "four survive no more than three"


def test_a_voter_that_comes_back_with_an_empty_disk_is_not_the_one_that_voted() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        assert isinstance(cluster, Dynamic)
        await cluster.start()
        wiped = next(at for at in cluster.serving if at is not active(cluster))
        wiped.lose_disk()
        await wiped.restart()
        assert wiped.node is not None
        quorum = wiped.node.controller.log.quorum
        assert quorum.voters.find(wiped.id) is not None
        assert not quorum.is_voter
        old = RemoveRaftVoterRequest(
            cluster_id=cluster.cluster_id,
            voter_id=wiped.id,
            voter_directory_id=cluster.directory_of(wiped.id),
        )
        assert (await ask_active(cluster, old)).error_code == ErrorCode.NONE
        assert (await ask_active(cluster, adding(cluster, wiped.id))).error_code == ErrorCode.NONE
        await cluster.until(lambda: quorum.is_voter)

    # Without the checker, for which a node is the same with another disk, and goes back in time.
    Dynamic(seed=6, nodes=3, settings=FAST).run(scenario)


def test_a_controller_joins_by_itself_where_it_may_and_again_with_a_new_disk() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        assert isinstance(cluster, Dynamic)
        await cluster.start()
        await cluster.until(lambda: all(cluster.voters_of(number) == (1, 2, 3, 4) for number in cluster.nodes))
        wiped = next(at for at in cluster.serving if at is not active(cluster))
        wiped.lose_disk()
        await wiped.restart()
        assert wiped.node is not None
        await cluster.until(lambda: wiped.node is not None and wiped.node.controller.log.quorum.is_voter)
        await cluster.until(lambda: all(sorted(cluster.voters_of(number)) == [1, 2, 3, 4] for number in cluster.nodes))

    settings = {**FAST, "controller.quorum.auto.join.enable": "true"}
    Dynamic(seed=8, nodes=4, settings=settings).run(scenario)


def test_a_voter_that_has_moved_tells_its_new_address() -> None:
    """By UpdateRaftVoter (KIP-853)."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        moving = next(at for at in cluster.serving if at is not active(cluster))
        await moving.shut_down()
        moving.settings["listeners"] = moving.settings["listeners"].replace(":9093", ":9193")
        await moving.restart()

        def known_port(controller: ControllerNode) -> int:
            voter = controller.log.quorum.voters.find(moving.id)
            assert voter is not None
            return voter.endpoints[0].port

        await cluster.until(lambda: all(known_port(controller) == 9193 for controller in controllers(cluster)))
        leader = active(cluster)
        assert leader is not None
        leader.kill()
        await cluster.until(lambda: active(cluster) is not None, what="the two that are left elect a leader")

    play(Dynamic(seed=9, nodes=3, settings=FAST), scenario)
