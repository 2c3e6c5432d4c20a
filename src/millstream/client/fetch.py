"""Fetch: whole record batches from the leaders of partitions.

One request per leader, all at once, without sessions: what is asked for is spelled out each time. A partition's bytes
start at the batch that holds the asked offset and may end in a part of one; `records` knows how to read them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.client.errors import Refusal, partition_subject, refuse
from millstream.client.grouping import by_leader, by_topic
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.protocol.messages.fetch import AbortedTransaction, FetchResponse

MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
    }
)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one partition answered; `batches` is a view that stays valid as long as it is kept."""

    topic: str
    partition: int
    batches: memoryview
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[AbortedTransaction, ...]


async def fetch(
    client: Client,
    offsets: Mapping[TopicPartition, int],
    *,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 52_428_800,
    partition_bytes_max: int = 1_048_576,
    read_committed: bool = False,
    timeout_ms: int | None = None,
) -> list[Fetched]:
    """Read on from these offsets; waits up to `max_wait_ms` where there is nothing yet.

    Partitions whose leader moves are asked again within the time; any other refusal is raised.
    """

    async def attempt() -> list[Fetched]:
        try:
            leaders = await by_leader(client, offsets)
            parts = await asyncio.gather(
                *(
                    ask_leader(
                        client,
                        node,
                        {place: offsets[place] for place in places},
                        max_wait_ms=max_wait_ms,
                        min_bytes=min_bytes,
                        max_bytes=max_bytes,
                        partition_bytes_max=partition_bytes_max,
                        read_committed=read_committed,
                    )
                    for node, places in leaders.items()
                )
            )
        except Refusal as refusal:
            if refusal.code in MOVED:
                for topic in by_topic(offsets):
                    client.metadata.forget(topic)
            raise
        return [fetched for part in parts for fetched in part]

    return await client.retrying(attempt, timeout_ms=timeout_ms)


async def ask_leader(
    client: Client,
    node: int,
    offsets: Mapping[TopicPartition, int],
    *,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    partition_bytes_max: int,
    read_committed: bool,
) -> list[Fetched]:
    """One request to the broker that leads all of these partitions."""
    topics = []
    for name, indexes in by_topic(offsets).items():
        topic = await client.metadata.topic(name)
        topics.append(
            FetchTopic(
                topic=name,
                topic_id=topic.id,
                partitions=[
                    FetchPartition(
                        partition=index,
                        current_leader_epoch=topic.partition(index).leader_epoch,
                        fetch_offset=offsets[name, index],
                        partition_max_bytes=partition_bytes_max,
                    )
                    for index in indexes
                ],
            )
        )
    # From version 13 on topics are named by id only, which needs brokers that have given ids (KIP-516).
    has_ids = all(any(topic.topic_id) for topic in topics)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(read_committed),
        topics=topics,
    )
    response: FetchResponse = await client.call(
        request, node=node, timeout_ms=max_wait_ms, lane="polls", at_most=32767 if has_ids else 12
    )
    refuse(response.error_code)
    fetched = []
    for answer in response.responses:
        name = answer.topic or client.metadata.name_of(answer.topic_id) or ""
        for data in answer.partitions:
            refuse(data.error_code, subject=partition_subject(name, data.partition_index))
            fetched.append(
                Fetched(
                    topic=name,
                    partition=data.partition_index,
                    batches=memoryview(data.records or b""),
                    high_watermark=data.high_watermark,
                    last_stable_offset=data.last_stable_offset,
                    log_start_offset=data.log_start_offset,
                    aborted=tuple(data.aborted_transactions or ()),
                )
            )
    return fetched
