"""A smaller ISR and a larger min.insync.replicas: nothing is acknowledged that an eligible leader may lack (KIP-966).

With min.insync.replicas raised from 1 to 2, a follower that leaves the ISR of two becomes an eligible leader. From then
on the leader, alone, must not commit anything; so it must not know of the smaller ISR before it knows of the minimum.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.broker.replica_scene import TOPIC, Scene, play

from millstream.broker.isr_changes import IsrChanges
from millstream.metadata.delta import apply
from millstream.metadata.image import BROKER_CONFIG, TOPIC_CONFIG
from millstream.protocol.messages.alter_partition import AlterPartitionResponsePartitionData
from millstream.protocol.messages.metadata.config import ConfigRecord
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord
from millstream.replication.leader import IsrProposal, PartitionLeader

if TYPE_CHECKING:
    from millstream.broker.partition import Partition


class Hosted:
    """What an answer is settled with of a partition: its leader, and who waits for a commit."""

    topic, index = TOPIC, 0

    def __init__(self) -> None:
        self.leader = PartitionLeader(
            node_id=1, epoch=5, partition_epoch=8, replicas=(1, 2, 3), isr=(1, 2), min_isr=1, own_end=10,
            high_watermark=6,
        )  # fmt: skip
        self.leader.follower_fetched(self.leader.follower(2, 5), 6, leader_end=10, now_ms=0)
        self.leader.follower_fetched(self.leader.follower(3, 5), 6, leader_end=10, now_ms=0)

    def isr_committed(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        self.leader.committed(isr=isr, partition_epoch=partition_epoch)

    def isr_refused(self, proposal: IsrProposal) -> None:
        self.leader.withdraw(proposal)


def settle(hosted: Hosted, *members: int) -> None:
    """The controller agrees to what is proposed."""
    node: Any = SimpleNamespace(settings={})
    proposal = hosted.leader.propose(members, 1)
    entry = AlterPartitionResponsePartitionData(
        partition_index=0, leader_id=1, leader_epoch=5, isr=list(members), partition_epoch=9
    )
    partition: Any = hosted
    IsrChanges(node)._settle(partition, proposal, entry)


def test_an_answer_that_overtakes_the_new_minimum_commits_nothing() -> None:
    hosted = Hosted()
    settle(hosted, 1)
    assert hosted.leader.high_watermark == 6
    hosted.leader.min_isr_changed(2)
    hosted.leader.committed(isr=(1,), partition_epoch=9)
    assert hosted.leader.proposal is None
    assert (hosted.leader.high_watermark, hosted.leader.has_enough_in_sync) == (6, False)


def test_without_a_new_minimum_the_metadata_let_the_leader_go_on_alone() -> None:
    hosted = Hosted()
    settle(hosted, 1)
    hosted.leader.committed(isr=(1,), partition_epoch=9)
    assert hosted.leader.high_watermark == 10


def test_a_larger_isr_counts_as_soon_as_the_controller_has_answered() -> None:
    hosted = Hosted()
    settle(hosted, 1, 2, 3)
    assert hosted.leader.isr == (1, 2, 3)
    assert hosted.leader.proposal is None


@pytest.mark.parametrize(("kind", "name"), [(TOPIC_CONFIG, TOPIC), (BROKER_CONFIG, "")])
def test_a_minimum_and_an_isr_that_come_together_are_followed_in_that_order(kind: int, name: str) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2], configs={} if kind == BROKER_CONFIG else {"min.insync.replicas": "1"})
        await scene.wrote(1, "a")
        partition: Partition = scene.partition(1)
        follower = scene.cluster.nodes[2]
        follower.pause()
        await scene.wrote(1, "b", acks=1)
        assert partition.log.high_watermark == 1
        node = scene.node(1)
        topic = node.image.topics.by_name[TOPIC]
        raised = ConfigRecord(resource_type=kind, resource_name=name, name="min.insync.replicas", value="2")
        shrunk = PartitionChangeRecord(partition_id=0, topic_id=topic.id, isr=[1], eligible_leader_replicas=[2])
        image, changes = apply(node.image, (raised, shrunk), offset=node.image.offset + 2)
        node.partitions.apply(image, changes)
        assert partition.leader is not None
        assert partition.leader.isr == (1,)
        assert partition.log.high_watermark == 1, "what the eligible leader lacks is not committed"
        follower.go_on()

    play(scenario, settings={"min.insync.replicas": "1", "broker.session.timeout.ms": "60000"})
