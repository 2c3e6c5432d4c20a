"""A member of a classic consumer group: it joins, is given partitions, keeps its place, commits, leaves.

Only what a command line needs, on the eager protocol: at a rebalance everything is given up and asked for again, and
the one assignor is `range`, which every client library speaks. Programs use confluent-kafka (DESIGN, decision 6).

A coordinator answers JoinGroup and SyncGroup when the others have come, maybe after minutes, and a broker handles a
connection's requests one after the other. So these two go the way of long polls, and a member that wants to leave
while it waits to be let in is heard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.client.client import CoordinatorOf
from millstream.client.errors import Refusal, partition_subject, refuse
from millstream.client.group_protocol import (
    CONSUMER,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from millstream.client.grouping import by_topic
from millstream.client.groups import LAST_VERSION_WITH_NAMES, Committed, group_subject
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from millstream.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from millstream.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from millstream.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from millstream.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition

ASSIGNOR = "range"
# The member's place is gone or is being given anew: all that helps is to join again.
REJOIN = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.MEMBER_ID_REQUIRED,
    }
)


def assign_ranges(
    subscriptions: Mapping[str, Sequence[str]], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Each topic's partitions in one piece per member; the first members get one more if it does not come out even."""
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    for topic, count in partition_counts.items():
        readers = sorted(member for member, topics in subscriptions.items() if topic in topics)
        begin = 0
        for place, member in enumerate(readers):
            size = count // len(readers) + (place < count % len(readers))
            assigned[member] += [(topic, index) for index in range(begin, begin + size)]
            begin += size
    return assigned


class GroupMember:
    """One member of one group."""

    def __init__(
        self,
        client: Client,
        group: str,
        topics: Sequence[str],
        *,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 300_000,
        instance_id: str | None = None,
    ) -> None:
        """With an instance id the member is a static one (KIP-345): whoever joins with the same id takes its place at
        once, and this one is refused with FENCED_INSTANCE_ID from then on."""
        self.group = group
        self.topics = list(topics)
        self.session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._client = client
        self._instance_id = instance_id
        self._member_id = ""
        self._generation = -1
        # What the leader assigned from; None in everybody else. When it changes, the group must rebalance.
        self._counts: dict[str, int] | None = None

    async def join(self) -> list[TopicPartition]:
        """Enter the group, or come back to it at a rebalance; the partitions that this member is to read."""
        while True:
            try:
                return await self._client.retrying(self._join_once, timeout_ms=self._rebalance_timeout_ms)
            except Refusal as refusal:
                if refusal.code not in REJOIN:
                    raise
                if refusal.code is ErrorCode.UNKNOWN_MEMBER_ID:
                    self._member_id = ""

    async def _join_once(self) -> list[TopicPartition]:
        response: JoinGroupResponse = await self._client.call(
            JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=self.session_timeout_ms,
                rebalance_timeout_ms=self._rebalance_timeout_ms,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                protocol_type=CONSUMER,
                protocols=[JoinGroupRequestProtocol(name=ASSIGNOR, metadata=write_subscription(self.topics))],
            ),
            node=CoordinatorOf(self.group),
            timeout_ms=self._rebalance_timeout_ms,
            lane="polls",
        )
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            # The coordinator has made up an id; whoever comes back with it is let in (KIP-394).
            self._member_id = response.member_id
        refuse(response.error_code, subject=group_subject(self.group))
        self._member_id, self._generation = response.member_id, response.generation_id
        return await self._sync(response)

    async def _sync(self, joined: JoinGroupResponse) -> list[TopicPartition]:
        assignments: list[SyncGroupRequestAssignment] = []
        self._counts = None
        if joined.leader == self._member_id and not joined.skip_assignment:
            subscriptions = {member.member_id: read_subscription(member.metadata) for member in joined.members}
            self._counts = await self._partition_counts([topic for each in subscriptions.values() for topic in each])
            assignments = [
                SyncGroupRequestAssignment(member_id=member, assignment=write_assignment(places))
                for member, places in assign_ranges(subscriptions, self._counts).items()
            ]
        response: SyncGroupResponse = await self._client.call(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                protocol_type=CONSUMER,
                protocol_name=ASSIGNOR,
                assignments=assignments,
            ),
            node=CoordinatorOf(self.group),
            timeout_ms=self._rebalance_timeout_ms,
            lane="polls",
        )
        refuse(response.error_code, subject=group_subject(self.group))
        return read_assignment(response.assignment)

    async def _partition_counts(self, topics: Sequence[str]) -> dict[str, int]:
        """Topics that do not exist, or are not shown to us, have no partitions to give yet."""
        found = await self._client.metadata.topics(sorted(set(topics)))
        return {name: 0 if isinstance(topic, Refusal) else len(topic.partitions) for name, topic in found.items()}

    async def has_outdated_assignment(self) -> bool:
        """Whether this member leads the group and its topics have more partitions than it gave out."""
        if self._counts is None:
            return False
        return await self._partition_counts(list(self._counts)) != self._counts

    async def heartbeat(self) -> bool:
        """Say that we are there; False if the group wants us to join again."""
        if not self._member_id:
            return False
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
        )

        async def attempt() -> None:
            response: HeartbeatResponse = await self._client.call(request, node=CoordinatorOf(self.group))
            refuse(response.error_code, subject=group_subject(self.group))

        return await self._still_in(attempt, request.member_id)

    async def commit(self, offsets: Mapping[TopicPartition, int | Committed], timeout_ms: int | None = None) -> bool:
        """Store how far we have read; False if the group has moved on, and others read on from an earlier commit."""
        if not self._member_id:
            return False
        stored = {place: Committed(each) if isinstance(each, int) else each for place, each in offsets.items()}
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=stored[topic, index].offset,
                            committed_leader_epoch=stored[topic, index].leader_epoch,
                            committed_metadata=stored[topic, index].metadata,
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(offsets).items()
            ],
        )

        async def attempt() -> None:
            response: OffsetCommitResponse = await self._client.call(
                request, node=CoordinatorOf(self.group), at_most=LAST_VERSION_WITH_NAMES
            )
            for topic in response.topics:
                for part in topic.partitions:
                    refuse(part.error_code, subject=partition_subject(topic.name, part.partition_index))

        return await self._still_in(attempt, request.member_id, timeout_ms)

    async def _still_in(
        self, attempt: Callable[[], Awaitable[None]], sent_id: str, timeout_ms: int | None = None
    ) -> bool:
        patience_ms = self.session_timeout_ms if timeout_ms is None else timeout_ms
        try:
            await self._client.retrying(attempt, timeout_ms=patience_ms)
        except Refusal as refusal:
            # An answer may be late: the member has joined again since, under another id, or is about to.
            is_late = sent_id != self._member_id
            if refusal.code not in REJOIN and not (is_late and refusal.code is ErrorCode.FENCED_INSTANCE_ID):
                raise
            if refusal.code is ErrorCode.UNKNOWN_MEMBER_ID and not is_late:
                self._member_id = ""
            return False
        return True

    async def leave(self, timeout_ms: int | None = None) -> None:
        """Give up the place, so that the others need not wait for the session to end."""
        # A static member may have been let in before it has heard which id it was given.
        if not self._member_id and self._instance_id is None:
            return
        request = LeaveGroupRequest(
            group_id=self.group,
            member_id=self._member_id,
            members=[MemberIdentity(member_id=self._member_id, group_instance_id=self._instance_id)],
        )
        self._member_id, self._generation = "", -1

        async def attempt() -> None:
            response: LeaveGroupResponse = await self._client.call(request, node=CoordinatorOf(self.group))
            refuse(response.error_code, subject=group_subject(self.group))

        await self._still_in(attempt, request.member_id, timeout_ms)
