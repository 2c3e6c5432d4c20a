"""Bugs that dice hardly ever find, each with the one order of events that shows it: the right code passes it, too.

What is broken and when is written down here; everything else (delays, time-outs, who is elected) is still a seed's.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from millstream.broker.partition import Partition
from millstream.broker.peers import Peers
from millstream.client.produce import produce
from millstream.metadata import decide_alter_partition
from millstream.metadata.partition_change import _Draft
from millstream.protocol.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from millstream.quorum import leading
from millstream.quorum.election_state import ElectionState, encode_election_state
from millstream.quorum.node import QuorumNode
from millstream.quorum.roles import Leader
from millstream.records.building import encode_batch
from millstream.testing.cluster import CONTROLLER_PORT, SimulatedCluster
from millstream.testing.replica_invariants import IN_SYNC_HOLD
from tests.sim.directed import (
    PLACE,
    end_at,
    image,
    loses_touch,
    play,
    until_isr,
    until_led_by,
    write,
)
from tests.sim.planting import Plant, must_be_found, replaces
from tests.sim.quorum_world import QuorumWorld

if TYPE_CHECKING:
    from millstream.client.client import Client

FIGURE_8_SEEDS = range(12)


# --- Raft's figure 8: an entry of an older epoch is not committed because a majority has it


def figure_8(seed: int) -> bool:
    """Whether it came to the moment in question: a majority holds the older entry, and not yet one of the new epoch."""
    world = QuorumWorld(seed, voters=5)
    world._at_peace = True
    old, older, other = (1, "a"), (2, "b"), (3, "c")
    world.ledger = [old]
    for number, entries in {1: [old, older], 2: [old, older], 3: [old], 4: [old], 5: [old, other]}.items():
        member = world.members[number]
        member.log.entries, member.log.durable = list(entries), len(entries)
        member.file = encode_election_state(ElectionState(epoch=3), kraft_version=0, voter_ids=world.voters.ids())
    for number in (1, 2, 3):
        world.members[number].boot()
    third = world.members[3]

    def noted() -> bool:
        roles = [world.members[number].machine.role for number in (1, 2) if world.members[number].machine]  # type: ignore[union-attr]
        return any(isinstance(role, Leader) and leading.held_by_majority(role, world.voters) == 2 for role in roles)

    while world.now_ms < 20_000 and len(third.log.entries) < 3:
        world._until(world.now_ms + 1)
        if len(third.log.entries) == 2 and noted():
            for number in (1, 2):
                world.members[number].crash()
                world.blocked[number, 3] = None  # nor does what it has just sent arrive
            for number in (4, 5):
                world.members[number].boot()
            # Only node 5 can be elected now, and what it has stands where the older entry stood.
            world._until(world.now_ms + 20_000)
            return True
    return False


def _commits_older_epochs(self: QuorumNode, now_ms: int) -> list[Any]:
    if not isinstance(self.role, Leader):
        return []
    return self._commit(leading.held_by_majority(self.role, self.voters))


async def last_in_sync_dies(cluster: SimulatedCluster, client: Client) -> None:
    """Two followers are down while the leader writes on; then they are up, and the leader is down."""
    for number in (2, 3):
        cluster.nodes[number].kill()
    await until_isr(cluster, 1)
    await write(client, 5)
    cluster.nodes[1].kill()
    for number in (2, 3):
        cluster.nodes[number].boot()
    for number in (2, 3):
        await cluster.nodes[number].until_ready()
    await asyncio.sleep(10)
    cluster.nodes[1].boot()
    await until_isr(cluster, 1, 2, 3)
    await write(client, 5)


async def late_change_of_the_isr(cluster: SimulatedCluster, client: Client) -> None:
    """A follower leaves the ISR, comes back and leaves again; then the request that brought it back arrives again."""
    before = await until_isr(cluster, 1, 2, 3)
    shrunk = await loses_touch(cluster, client)
    cluster.network.heal()
    await until_isr(cluster, 1, 2, 3)
    await loses_touch(cluster, client)
    now = image(cluster)
    wish = PartitionData(
        partition_index=0,
        leader_epoch=before.leader_epoch,
        partition_epoch=shrunk.partition_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=each, broker_epoch=now.brokers[each].epoch) for each in (1, 2, 3)],
    )
    topic_id = now.topics.by_name[PLACE[0]].id
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=now.brokers[1].epoch,
        topics=[TopicData(topic_id=topic_id, partitions=[wish])],
    )
    peers = Peers(cluster.network.at("node-1"), "late")
    for number in cluster.layout.controllers:
        await peers.at(f"node-{number}", CONTROLLER_PORT).ask(request, version=3, timeout_ms=5_000)
    peers.close()
    for number in (1, 2):
        cluster.nodes[number].kill()
    await asyncio.sleep(20)
    cluster.network.heal()
    for number in (1, 2):
        cluster.nodes[number].boot()
    await until_isr(cluster, 1, 2, 3)


async def epochs_without_writes(cluster: SimulatedCluster, client: Client) -> None:
    """KAFKA-7415. The last of three leaders has written nothing, and may not before a follower is back in sync.

    Each of the two that are left has one record that the other lacks, at the same offset, in epochs that the other one
    never saw. Only that the new leader knows where its own epoch begins tells them where their logs part.
    """
    batch = {PLACE: encode_batch([(b"key", b"not committed", (), 0)])}
    await write(client, 1)
    await cluster.until(lambda: end_at(cluster, 2) == end_at(cluster, 3) == 1, what="all have the first record")
    cluster.network.block(["node-2"], ["node-1", "node-3"])
    await produce(client, batch, acks=1)
    await cluster.until(lambda: end_at(cluster, 3) == 2, what="3 has what 2 lacks", every_s=0.01)
    cluster.nodes[1].kill()
    await until_led_by(cluster, 2)
    await produce(client, batch, acks=1)
    assert end_at(cluster, 2) == 2
    cluster.nodes[2].kill()
    await until_led_by(cluster, 3)
    cluster.network.heal()
    cluster.nodes[2].boot()
    await until_isr(cluster, 2, 3)
    await write(client, 5)
    cluster.nodes[1].boot()
    await until_isr(cluster, 1, 2, 3)


RIGHT_CHECK = decide_alter_partition._check
RIGHT_LEAD = Partition.lead


def _leads_without_noting_its_epoch(self: Partition, *arguments: Any, **more: Any) -> None:
    epochs: Any = self.log.epochs
    epochs.assign = lambda *_: False
    RIGHT_LEAD(self, *arguments, **more)
    del epochs.assign


def _checks_no_epoch(image: Any, partition: Any, wish: Any, *more: Any) -> None:
    wish.leader_epoch, wish.partition_epoch = partition.leader_epoch, partition.partition_epoch
    RIGHT_CHECK(image, partition, wish, *more)


SCENARIOS = {
    "last in sync dies": lambda seed: play(seed, last_in_sync_dies),
    "late change of the ISR": lambda seed: play(seed, late_change_of_the_isr),
    "epochs without writes": lambda seed: play(seed, epochs_without_writes, configs={"min.insync.replicas": "2"}),
}
PLANTS = [
    (
        replaces(
            "Raft 5.4.2: older epochs are committed",
            QuorumNode,
            "_advance",
            _commits_older_epochs,
            rule="a leader holds all that was committed",
            seeds=12,
        ),
        figure_8,
    ),
    (
        replaces(
            "who is not in the ISR is elected",
            _Draft,
            "_may_lead",
            lambda self, it: self._acceptable(it),
            rule=IN_SYNC_HOLD,
            seeds=1,
        ),
        SCENARIOS["last in sync dies"],
    ),
    (
        replaces(
            "AlterPartition of any epoch",
            decide_alter_partition,
            "_check",
            _checks_no_epoch,
            rule=IN_SYNC_HOLD,
            seeds=1,
        ),
        SCENARIOS["late change of the ISR"],
    ),
    (
        replaces(
            "KAFKA-7415: an epoch begins with its first record",
            Partition,
            "lead",
            _leads_without_noting_its_epoch,
            rule="a leader knows where its epoch begins",
            seeds=1,
        ),
        SCENARIOS["epochs without writes"],
    ),
]


def test_the_right_quorum_stands_figure_8() -> None:
    came_to_it = [figure_8(seed) for seed in FIGURE_8_SEEDS]
    assert any(came_to_it), "it never came to the moment in question"


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_right_code_stands_it(name: str) -> None:
    SCENARIOS[name](1)


@pytest.mark.parametrize(("plant", "run"), PLANTS, ids=lambda each: str(each) if isinstance(each, Plant) else "")
def test_a_planted_bug_is_found(plant: Plant, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.plant(monkeypatch)
    must_be_found(plant, run)
