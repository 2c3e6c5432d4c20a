"""Somebody who changes the cluster while it works: topics come and go, replicas move, leaders are elected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.client.admin.topics import NewTopic, create_topics, delete_topics
from millstream.client.client import CONTROLLER
from millstream.client.errors import ClientError, Refusal
from millstream.metadata.decide_features import UPGRADE
from millstream.metadata.features import KRAFT_VERSION
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from millstream.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from millstream.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from millstream.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from millstream.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from millstream.testing.cluster import CONTROLLER_PORT
from millstream.testing.workers import Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.protocol.uuid import Uuid
    from millstream.testing.cluster import SimulatedCluster
    from millstream.testing.history import History, Place

ADMIN_TIMEOUT_MS = 5_000


class Administrator(Worker):
    """Each step is one request. What was promised is remembered, for the end."""

    def __init__(self, cluster: SimulatedCluster, name: str, history: History, places: Sequence[Place]) -> None:
        super().__init__(cluster, name, history, pause_s=1.5)
        self._places = places
        self._number = 0
        self.topics: dict[str, bool | None] = {}
        """By name: whether it must exist; None where nobody knows."""
        self.moves = 0
        self._voter_out: int | None = None
        self._is_dynamic = cluster.layout.is_dynamic

    async def step(self) -> None:
        kinds = [self._create, self._delete, self._reassign, self._elect]
        # A voter in the log whose disk was lost never votes again: who takes another one out then has no majority.
        if all(self.cluster.nodes[number].disks == 1 for number in self.cluster.layout.controllers):
            kinds.append(self._change_voters if self._is_dynamic else self._upgrade_quorum)
        await self.random.choice(kinds)()

    async def _create(self) -> None:
        self._number += 1
        name = f"{self.name}.{self._number}"
        self.topics[name] = None
        replicas = min(3, len(self.cluster.brokers))
        outcome = (await create_topics(self.client, [NewTopic(name, self.random.randint(1, 3), replicas)]))[name]
        if not isinstance(outcome, Refusal):
            self.topics[name] = True

    async def _delete(self) -> None:
        standing = [name for name, exists in self.topics.items() if exists]
        if not standing:
            return
        name = self.random.choice(standing)
        self.topics[name] = None
        if (await delete_topics(self.client, [name]))[name] is None:
            self.topics[name] = False

    async def _reassign(self) -> None:
        topic, partition = self.random.choice(self._places)
        count = min(3, len(self.cluster.brokers))
        if len(self.cluster.brokers) <= count:
            # Nowhere to move to: another order makes another preferred leader.
            replicas = self.random.sample(list(self.cluster.brokers), count)
        else:
            replicas = self.random.sample(list(self.cluster.brokers), self.random.randint(min(2, count), count))
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=ADMIN_TIMEOUT_MS,
            topics=[
                ReassignableTopic(
                    name=topic, partitions=[ReassignablePartition(partition_index=partition, replicas=replicas)]
                )
            ],
        )
        answer = await self.client.call(request, node=CONTROLLER, timeout_ms=ADMIN_TIMEOUT_MS)
        if answer.error_code == ErrorCode.NONE:
            self.moves += 1

    async def _elect(self) -> None:
        topic, partition = self.random.choice(self._places)
        request = ElectLeadersRequest(
            election_type=0,
            topic_partitions=[TopicPartitions(topic=topic, partitions=[partition])],
            timeout_ms=ADMIN_TIMEOUT_MS,
        )
        await self.client.call(request, node=CONTROLLER, timeout_ms=ADMIN_TIMEOUT_MS)

    async def _upgrade_quorum(self) -> None:
        """Fixed voters become voters in the log; refused until all of them have told the leader who they are."""
        update = FeatureUpdateKey(feature=KRAFT_VERSION, max_version_level=1, upgrade_type=UPGRADE)
        request = UpdateFeaturesRequest(timeout_ms=ADMIN_TIMEOUT_MS, feature_updates=[update])
        answer = await self.client.call(request, node=CONTROLLER, timeout_ms=ADMIN_TIMEOUT_MS)
        self._is_dynamic = answer.error_code == ErrorCode.NONE

    async def _change_voters(self) -> None:
        """One voter at a time is out, and then in again; which one, nobody is sure of while answers get lost."""
        number = self._voter_out
        if number is None:
            number = self.random.choice(self.cluster.layout.controllers)
            directory_id = self._directory_of(number)
            if directory_id is not None:
                self._voter_out = number
                removing = RemoveRaftVoterRequest(
                    cluster_id=self.cluster.cluster_id, voter_id=number, voter_directory_id=directory_id
                )
                await self.client.call(removing, node=CONTROLLER, timeout_ms=ADMIN_TIMEOUT_MS)
            return
        directory_id = self._directory_of(number)
        if directory_id is None:
            return
        adding = AddRaftVoterRequest(
            cluster_id=self.cluster.cluster_id,
            timeout_ms=ADMIN_TIMEOUT_MS,
            voter_id=number,
            voter_directory_id=directory_id,
            listeners=[Listener(name="CONTROLLER", host=f"node-{number}", port=CONTROLLER_PORT)],
        )
        answer = await self.client.call(adding, node=CONTROLLER, timeout_ms=2 * ADMIN_TIMEOUT_MS)
        if answer.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER):
            self._voter_out = None

    def _directory_of(self, number: int) -> Uuid | None:
        """As formatting has promised it; else as the node says, if it is up."""
        if self.cluster.layout.is_dynamic:
            return self.cluster.directory_of(number)
        serving = self.cluster.nodes[number].serving
        return None if serving is None else serving.storage.metadata_directory_id

    async def finish(self) -> None:
        """No move may be left half done: who moved back and forth wants it to end somewhere."""
        self.client.metadata.controller_id = -1


async def existing_topics(worker: Worker) -> dict[str, None]:
    """All topics that the cluster knows, asked until it answers."""
    for _ in range(30):
        try:
            return dict.fromkeys(topic.name for topic in await worker.client.metadata.all_topics())
        except ClientError:
            continue
    raise AssertionError("the cluster does not tell its topics")
