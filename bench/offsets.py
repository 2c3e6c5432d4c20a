"""Offset commits and fetches on a raw connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.raw import RawClient, frame
from tests.support.waiting import wait_until

from millstream.protocol.codec import decode
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from millstream.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

# The last version that goes by topic names.
VERSION = 9
IN_FLIGHT, AT_ONCE = 1_000, 100


def commit_frames(
    groups: Sequence[str], topic: str, partitions: Sequence[int], *, rounds: int, partitions_each: int
) -> list[bytes]:
    """Requests that bring every group to offset `rounds` in every partition, one step at a time, groups in turn."""
    chunks = [partitions[start : start + partitions_each] for start in range(0, len(partitions), partitions_each)]
    return [
        _commit(group, topic, chunk, offset) for offset in range(1, rounds + 1) for group in groups for chunk in chunks
    ]


def _commit(group: str, topic: str, partitions: Sequence[int], offset: int) -> bytes:
    """A commit of somebody who is no member, as of a consumer with partitions assigned by hand."""
    wanted = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        for index in partitions
    ]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=wanted)]
    return frame(OffsetCommitRequest(group_id=group, member_id="", topics=topics), VERSION, correlation_id=1)


def send_all(client: RawClient, frames: Sequence[bytes]) -> None:
    """Pipelined: up to a thousand requests are on their way. Every answer is looked at, after the last has come."""
    answers: list[bytes] = []
    for start in range(0, len(frames), AT_ONCE):
        client.send_bytes(b"".join(frames[start : start + AT_ONCE]))
        while start + AT_ONCE - len(answers) > IN_FLIGHT:
            answers.append(_answer(client))
    while len(answers) < len(frames):
        answers.append(_answer(client))
    for different in sorted(set(answers)):
        for topic in decode(OffsetCommitResponse, VERSION, different, 5).topics:
            for partition in topic.partitions:
                assert partition.error_code == ErrorCode.NONE, f"a commit was refused with {partition.error_code}"


def _answer(client: RawClient) -> bytes:
    answer = client.receive_frame()
    assert answer is not None, "the broker hung up"
    return answer


def fetched(client: RawClient, groups: Sequence[str], topic: str, partition: int = 0) -> dict[str, int | None]:
    """The committed offset of each group, -1 where there is none, None where the coordinator does not answer for it."""
    places = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
    wanted = [OffsetFetchRequestGroup(group_id=group, topics=places) for group in groups]
    answer = client.call(OffsetFetchRequest(groups=wanted), VERSION)
    return {
        group.group_id: group.topics[0].partitions[0].committed_offset if group.error_code == ErrorCode.NONE else None
        for group in answer.groups
    }


def wait_for_coordinators(client: RawClient, groups: Sequence[str]) -> None:
    """Until each group's coordinator is known and has loaded; the first question of all makes the offsets topic."""

    def ready() -> bool:
        found = client.call(FindCoordinatorRequest(coordinator_keys=list(groups)), 4).coordinators
        if any(each.error_code != ErrorCode.NONE for each in found):
            return False
        return None not in fetched(client, groups, "any").values()

    wait_until(ready, "the groups' coordinators", within_s=120, every_s=0.05)
