"""Clients that work until they are told to stop, and note what they did and saw in a History."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.client.client import LeaderOf
from millstream.client.errors import ClientError, NeverReached, Refusal, Unreachable, partition_subject
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.testing.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Collection

    from millstream.client.client import Client
    from millstream.testing.cluster import SimulatedCluster
    from millstream.testing.history import History, Place

PRODUCE_TIMEOUT_MS = 3_000
BACKOFF_S = 0.1
# Answers that say for sure: nothing was written.
NOT_WRITTEN = frozenset(
    {
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)

DAMAGED = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)


class Worker:
    """One client on a machine of its own. Subclasses say what a `step` is."""

    def __init__(self, cluster: SimulatedCluster, name: str, history: History, *, pause_s: float = 0.2) -> None:
        self.name = name
        self.cluster = cluster
        self.history = history
        self.client = cluster.client(name)
        self.random = cluster.random_for(name)
        self.stopping = False
        self._pause_s = pause_s

    async def step(self) -> None:
        raise NotImplementedError

    async def run(self) -> None:
        """Steps with pauses in between; a refusal or a lost connection only makes it wait."""
        while not self.stopping:
            try:
                await self.step()
            except NeverReached:
                # The first contact fails while all nodes are down; programs that live through that try again.
                await asyncio.sleep(BACKOFF_S)
            except ClientError:
                await asyncio.sleep(BACKOFF_S)
            await asyncio.sleep(self.random.random() * self._pause_s)
        await self.finish()
        await self.client.close()

    async def finish(self) -> None:
        """What is left to do when everything is healed."""

    def now_s(self) -> float:
        return self.cluster.loop.time()


async def produce_once(
    client: Client,
    place: Place,
    batch: bytes | bytearray,
    *,
    transactional_id: str | None = None,
    version_max: int = 32767,
    impossible: Collection[ErrorCode] = DAMAGED,
) -> int | None:
    """One attempt at the leader; the base offset, None for a batch that was there already. Raises ClientError.

    `impossible` are refusals that no broker has a reason for: the simulation ends with them.
    """
    topic, partition = place
    found = await client.metadata.topic(topic)
    has_id = any(found.id)
    data = TopicProduceData(
        name=topic, topic_id=found.id, partition_data=[PartitionProduceData(index=partition, records=bytes(batch))]
    )
    answer = await client.call(
        ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=PRODUCE_TIMEOUT_MS, topic_data=[data]),
        node=LeaderOf(topic, partition),
        timeout_ms=PRODUCE_TIMEOUT_MS,
        at_most=version_max if has_id else min(version_max, 12),
    )
    result = answer.responses[0].partition_responses[0]
    if result.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return None
    if result.error_code in impossible:
        # Batches of these clients are well-formed, and the network loses connections but never changes a byte.
        what = f"{topic}-{partition} was told {ErrorCode(result.error_code).name}: {result.error_message}"
        raise Violation("what arrives is what was sent", what)
    if result.error_code:
        client.metadata.forget(topic)
        raise Refusal(result.error_code, result.error_message, subject=partition_subject(topic, partition))
    return int(result.base_offset) if result.base_offset >= 0 else None


def surely_not_written(error: ClientError) -> bool:
    """Whether the answer to one attempt proves that it left nothing behind."""
    if isinstance(error, Refusal):
        return error.code in NOT_WRITTEN
    return isinstance(error, Unreachable)
