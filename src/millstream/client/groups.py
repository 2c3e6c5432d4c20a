"""The offsets that consumer groups have stored, read and written from outside of the group.

Topics are named here, not identified: both requests are capped below version 10, which would know ids only, because
a group may hold offsets of topics that are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.client.client import CoordinatorOf
from millstream.client.errors import partition_subject, refuse
from millstream.client.grouping import by_topic
from millstream.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.protocol.messages.offset_commit import OffsetCommitResponse
    from millstream.protocol.messages.offset_fetch import OffsetFetchResponse

LAST_VERSION_WITH_NAMES = 9


class Committed(NamedTuple):
    """Where a group goes on reading, and the note that came with it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


async def committed_offsets(
    client: Client, group: str, partitions: Collection[TopicPartition] | None = None, *, stable: bool = True
) -> dict[TopicPartition, Committed]:
    """What the group has stored, for these partitions or for all; partitions without an offset are left out.

    `stable` waits until no open transaction could still change the answer (KIP-447).
    """
    named = None if partitions is None else by_topic(partitions)
    request = OffsetFetchRequest(
        group_id=group,
        topics=None
        if named is None
        else [OffsetFetchRequestTopic(name=topic, partition_indexes=indexes) for topic, indexes in named.items()],
        groups=[
            OffsetFetchRequestGroup(
                group_id=group,
                topics=None
                if named is None
                else [
                    OffsetFetchRequestTopics(name=topic, partition_indexes=indexes) for topic, indexes in named.items()
                ],
            )
        ],
        require_stable=stable,
    )

    async def attempt() -> dict[TopicPartition, Committed]:
        response: OffsetFetchResponse = await client.call(
            request, node=CoordinatorOf(group), at_most=LAST_VERSION_WITH_NAMES
        )
        # Up to version 7 the answer is for one group and stands in the response itself.
        answer = response.groups[0] if response.groups else response
        refuse(answer.error_code, subject=group_subject(group))
        found: dict[TopicPartition, Committed] = {}
        for topic in answer.topics:
            for part in topic.partitions:
                refuse(part.error_code, subject=partition_subject(topic.name, part.partition_index))
                if part.committed_offset >= 0:
                    found[topic.name, part.partition_index] = Committed(
                        part.committed_offset, part.metadata or "", part.committed_leader_epoch
                    )
        return found

    return await client.retrying(attempt)


async def commit_offsets(client: Client, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
    """Store offsets for a group that has no members at the moment, as tools do."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=offsets[topic, index].offset,
                    committed_leader_epoch=offsets[topic, index].leader_epoch,
                    committed_metadata=offsets[topic, index].metadata,
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(offsets).items()
    ]

    async def attempt() -> None:
        response: OffsetCommitResponse = await client.call(
            OffsetCommitRequest(group_id=group, member_id="", topics=topics),
            node=CoordinatorOf(group),
            at_most=LAST_VERSION_WITH_NAMES,
        )
        for topic in response.topics:
            for part in topic.partitions:
                subject = f"{group_subject(group)}, {partition_subject(topic.name, part.partition_index)}"
                refuse(part.error_code, subject=subject)

    await client.retrying(attempt)


def group_subject(group: str) -> str:
    return f"group {group!r}"
