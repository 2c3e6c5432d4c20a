"""Keeps the ISR of the partitions that this broker leads true: who has caught up comes in, who lags goes out.

The rules are the leader's (replication/leader.py); here is what goes around them: which brokers are alive, the clock,
and AlterPartition, by which a leader asks the controller (KIP-497). What came up in one turn of the loop, or while a
request was under way, goes out together; there is one request at a time.

A proposal whose answer is lost may have been carried out, so it is never withdrawn for that: it is sent again until the
controller refuses it, or until the metadata shows what came of it. A smaller ISR is believed from the metadata only.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.broker.peers import PeerUnreachable
from millstream.broker.replica_throttles import ReplicaThrottles
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from millstream.runtime.logs import Logger
from millstream.settings import REPLICA_LAG_TIME_MAX_MS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.broker.fetch_sessions import Wanted
    from millstream.broker.node import Node
    from millstream.broker.partition import Partition
    from millstream.protocol.messages.alter_partition import AlterPartitionResponsePartitionData
    from millstream.replication.followers import Follower
    from millstream.replication.leader import IsrProposal

_log = Logger("millstream.isr")

_VERSION = 3
_TIMEOUT_MS = 10_000
_RETRY_MS = 50
_RETRY_MAX_MS = 1_000
# What the controller will not change its mind about; the metadata shows what it knows better.
_REFUSED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class IsrChanges:
    """Watches the followers of everything that is led here."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.throttles = ReplicaThrottles(node)
        self._waiting: dict[Partition, IsrProposal] = {}
        self._watching: asyncio.Task[None] | None = None
        self._sending: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        tasks = [task for task in (self._watching, self._sending) if task is not None]
        self._watching = self._sending = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- coming in

    def follower_fetched(self, partition: Partition, wanted: Wanted, replica: int, broker_epoch: int) -> None:
        """A follower asked for what comes after its log; it may be in sync by that."""
        leader = partition.leading()
        follower = leader.follower(replica, wanted.current_leader_epoch)
        now_ms = self._node.ports.clock.monotonic_ms()
        partition.follower_fetched(follower, wanted.fetch_offset, wanted.log_start_offset, broker_epoch, now_ms)
        if replica not in leader.isr:
            self._let_in(partition, follower, now_ms)

    def _let_in(self, partition: Partition, follower: Follower, now_ms: int) -> None:
        leader = partition.leader
        assert leader is not None
        alive = self._may_be_in_sync(follower)
        lag_max_ms = self._node.settings[REPLICA_LAG_TIME_MAX_MS]
        near = alive and follower.is_caught_up(partition.log.end_offset, now_ms, lag_max_ms)
        partition.wait_for_joiner(follower, waits=near)
        if alive and leader.may_join(follower):
            self._node.metrics.isr_expansions += 1
            self._propose(partition, (*leader.isr, follower.id))

    def _may_be_in_sync(self, follower: Follower) -> bool:
        """Alive as far as the metadata knows, and the very process that fetched (KIP-903)."""
        broker = self._node.image.brokers.get(follower.id)
        return broker is not None and broker.active and follower.broker_epoch in (-1, broker.epoch)

    def brokers_changed(self, brokers: Iterable[int]) -> None:
        """Nobody waits for a joiner whose broker was fenced, or has been replaced by another process."""
        changed = set(brokers)
        if not changed:
            return
        for partition in self._node.partitions:
            if partition.leader is not None:
                for joiner in partition.leader.joiners():
                    if joiner.id in changed and not self._may_be_in_sync(joiner):
                        partition.wait_for_joiner(joiner, waits=False)

    # --- going out

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._node.settings[REPLICA_LAG_TIME_MAX_MS] / 2000)
            self.look_for_lagging()

    def look_for_lagging(self) -> None:
        """Propose to go on without those who have not caught up for too long."""
        now_ms = self._node.ports.clock.monotonic_ms()
        lag_max_ms = self._node.settings[REPLICA_LAG_TIME_MAX_MS]
        for partition in self._node.partitions:
            leader = partition.leader
            if leader is None or not leader.followers:
                continue
            end_offset = partition.log.end_offset
            for joiner in leader.joiners():
                if not joiner.is_caught_up(end_offset, now_ms, lag_max_ms):
                    partition.wait_for_joiner(joiner, waits=False)
            lagging = leader.lagging(end_offset, now_ms, lag_max_ms)
            if lagging and leader.proposal is None:
                _log.info("followers lag", topic=partition.topic, partition=partition.index, lagging=str(list(lagging)))
                self._node.metrics.isr_shrinkings += 1
                self._propose(partition, tuple(member for member in leader.isr if member not in lagging))

    # --- asking the controller

    def _propose(self, partition: Partition, members: tuple[int, ...]) -> None:
        leader = partition.leader
        assert leader is not None
        self._waiting[partition] = leader.propose(members, self._node.broker_epoch)
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    async def _send_all(self) -> None:
        retry_ms = _RETRY_MS
        try:
            while self._waiting:
                sent, self._waiting = self._waiting, {}
                sent = {partition: asked for partition, asked in sent.items() if _stands(partition, asked)}
                if sent and await self._send(sent):
                    retry_ms = _RETRY_MS
                elif self._waiting:
                    await asyncio.sleep(retry_ms / 1000)
                    retry_ms = min(2 * retry_ms, _RETRY_MAX_MS)
        finally:
            self._sending = None

    async def _send(self, sent: dict[Partition, IsrProposal]) -> bool:
        """Whether there was an answer. What has to be asked again is waiting after this."""
        try:
            answer = await self._node.ask_controller(
                _request(self._node.node_id, self._node.broker_epoch, sent), version=_VERSION, timeout_ms=_TIMEOUT_MS
            )
        except (BrokerError, PeerUnreachable) as error:
            _log.warning("the controller could not be asked for another ISR", error=str(error))
            self._ask_again(sent)
            return False
        if answer.error_code != ErrorCode.NONE:
            _log.warning("the controller refused changes of the ISR", error=ErrorCode(answer.error_code).name)
            self._ask_again(sent)
            return False
        self._answered(sent, answer)
        return not self._waiting

    def _ask_again(self, sent: dict[Partition, IsrProposal]) -> None:
        self._waiting = {**sent, **self._waiting}

    def _answered(self, sent: dict[Partition, IsrProposal], answer: AlterPartitionResponse) -> None:
        answers = {
            (topic.topic_id, entry.partition_index): entry for topic in answer.topics for entry in topic.partitions
        }
        for partition, asked in sent.items():
            entry = answers.get((partition.topic_id, partition.index))
            if entry is None:
                self._ask_again({partition: asked})
            elif _stands(partition, asked):
                self._settle(partition, asked, entry)

    def _settle(self, partition: Partition, asked: IsrProposal, entry: AlterPartitionResponsePartitionData) -> None:
        code = ErrorCode(entry.error_code)
        if code is ErrorCode.NONE:
            if entry.leader_epoch == asked.leader_epoch:
                assert partition.leader is not None
                is_news = entry.partition_epoch > partition.leader.partition_epoch
                if is_news and not set(partition.leader.isr) <= set(entry.isr):
                    # Who left may be an eligible leader from now on (KIP-966), by a min.insync.replicas that was raised
                    # just before. The metadata tell both in order; this answer may have overtaken the first.
                    return
                partition.isr_committed(tuple(entry.isr), entry.partition_epoch)
                # Where the ISR was that already, nothing has changed, and the epoch neither.
                partition.isr_refused(asked)
            return
        _log.info("an ISR was refused", topic=partition.topic, partition=partition.index, error=code.name)
        if code is ErrorCode.INELIGIBLE_REPLICA:
            partition.isr_refused(asked)
        elif code not in _REFUSED:
            self._ask_again({partition: asked})


def _stands(partition: Partition, asked: IsrProposal) -> bool:
    """Whether the answer still matters: neither the epoch nor the metadata have gone past it."""
    return partition.leader is not None and partition.leader.proposal is asked


def _request(node_id: int, broker_epoch: int, asked: dict[Partition, IsrProposal]) -> AlterPartitionRequest:
    topics: dict[object, TopicData] = {}
    for partition, proposal in asked.items():
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = topics[partition.topic_id] = TopicData(topic_id=partition.topic_id, partitions=[])
        topic.partitions.append(
            PartitionData(
                partition_index=partition.index,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=[
                    BrokerState(broker_id=member, broker_epoch=epoch) for member, epoch in proposal.isr
                ],
                partition_epoch=proposal.partition_epoch,
            )
        )
    return AlterPartitionRequest(broker_id=node_id, broker_epoch=broker_epoch, topics=list(topics.values()))
