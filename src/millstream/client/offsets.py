"""Offsets by time: the first, the last, the one at a timestamp; and where an epoch ended."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.client.client import LeaderOf
from millstream.client.errors import partition_subject, refuse
from millstream.client.grouping import by_leader, by_topic
from millstream.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from millstream.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
# The version that first knows a special timestamp; an older broker would take it for a time before 1970.
_FIRST_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """Where a timestamp was found; offset -1 if no record is that young."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


async def list_offsets(
    client: Client,
    timestamps: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, FoundOffset]:
    """For each partition the offset of the first record at or after a time, or of a special one (LATEST...)."""

    async def attempt() -> dict[TopicPartition, FoundOffset]:
        leaders = await by_leader(client, timestamps)
        found: dict[TopicPartition, FoundOffset] = {}
        for part in await asyncio.gather(
            *(
                _ask(client, node, {place: timestamps[place] for place in places}, read_committed)
                for node, places in leaders.items()
            )
        ):
            found.update(part)
        return {place: found[place] for place in timestamps}

    async def attempt_or_forget() -> dict[TopicPartition, FoundOffset]:
        try:
            return await attempt()
        except Exception:
            for topic in by_topic(timestamps):
                client.metadata.forget(topic)
            raise

    return await client.retrying(attempt_or_forget, timeout_ms=timeout_ms)


async def _ask(
    client: Client,
    node: int,
    timestamps: Mapping[TopicPartition, int],
    read_committed: bool,  # noqa: FBT001
) -> dict[TopicPartition, FoundOffset]:
    response: ListOffsetsResponse = await client.call(
        ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(read_committed),
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=timestamps[topic, index])
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(timestamps).items()
            ],
            timeout_ms=client.options.request_timeout_ms,
        ),
        node=node,
        at_least=max(_FIRST_VERSION.get(timestamp, 0) for timestamp in timestamps.values()),
    )
    found: dict[TopicPartition, FoundOffset] = {}
    for topic in response.topics:
        for result in topic.partitions:
            refuse(result.error_code, subject=partition_subject(topic.name, result.partition_index))
            found[topic.name, result.partition_index] = FoundOffset(
                result.offset, result.timestamp, result.leader_epoch
            )
    return found


async def epoch_end_offset(client: Client, topic: str, partition: int, leader_epoch: int) -> tuple[int, int]:
    """(epoch, end offset) of the largest epoch up to `leader_epoch` (KIP-320's check for truncation)."""
    asked = OffsetForLeaderPartition(partition=partition, leader_epoch=leader_epoch)

    async def attempt() -> tuple[int, int]:
        response: OffsetForLeaderEpochResponse = await client.call(
            OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]),
            node=LeaderOf(topic, partition),
        )
        result = response.topics[0].partitions[0]
        refuse(result.error_code, subject=partition_subject(topic, partition))
        return result.leader_epoch, result.end_offset

    return await client.retrying(attempt, topic=topic)
