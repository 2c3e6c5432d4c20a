"""Members of a group that do nothing but belong to it: a load generator for the coordinator, in both protocols.

Real clients spend most of a rebalance waiting for their own heartbeat timer. These ask every `HEARTBEAT_S`, which is
often enough to see the coordinator and rare enough not to drown it, and do at once whatever the protocol lets them do:
a classic member joins again as soon as it hears of a rebalance, a KIP-848 member acknowledges an assignment as soon as
it has it. Each protocol's notion of `stable`:

    classic     all members hold an assignment of the same generation
    consumer    all members are at the same epoch, and each partition is held by one of them, each member having some
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Protocol

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from millstream.protocol.messages.heartbeat import HeartbeatRequest
from millstream.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from millstream.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from millstream.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.member_connection import MemberConnection

HEARTBEAT_S = 0.05
TIMEOUT_MS = 30_000
# What a member says and gets is opaque to the coordinator of a classic group; this is what a small one looks like.
METADATA, ASSIGNMENT = b"\0\1" + bytes(40), b"\0\1" + bytes(40)


class Member(Protocol):
    """One member of a group of either protocol."""

    async def belong(self) -> None:
        """Join and stay until the group is stable."""

    async def leave(self) -> None: ...


class Group:
    """What the load generator knows of a group: who stands where, and whether that is the end of it."""

    def __init__(self, group_id: str, topic: str, partitions: int) -> None:
        self.id = group_id
        self.topic = topic
        self.stable = asyncio.Event()
        self._partitions = partitions
        self._size = 0
        self._synced: dict[int, int] = {}
        self._held: dict[Member, tuple[int, frozenset[int]]] = {}

    async def form(self, members: Sequence[Member]) -> float:
        """Let all of them join at once; the seconds until the group is stable."""
        self._size = len(members)
        began = time.perf_counter()
        await asyncio.wait_for(asyncio.gather(*(member.belong() for member in members)), 120)
        took_s = time.perf_counter() - began
        await asyncio.gather(*(member.leave() for member in members))
        return took_s

    async def pause(self) -> None:
        """Until the next heartbeat is due, or nobody needs one any more."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stable.wait(), HEARTBEAT_S)

    def synced(self, generation: int) -> None:
        """A classic member has its assignment of this generation."""
        self._synced[generation] = self._synced.get(generation, 0) + 1
        if self._synced[generation] == self._size:
            self.stable.set()

    def holds(self, member: Member, epoch: int, partitions: frozenset[int]) -> None:
        """A KIP-848 member is at this epoch and has acknowledged these partitions."""
        if self._held.get(member) == (epoch, partitions):
            return
        self._held[member] = (epoch, partitions)
        if len(self._held) < self._size or not all(held == epoch for held, _ in self._held.values()):
            return
        held = [partition for _, each in self._held.values() for partition in each]
        if len(held) == len(set(held)) == self._partitions and all(each for _, each in self._held.values()):
            self.stable.set()


class ClassicMember:
    """JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

    def __init__(self, group: Group, connection: MemberConnection, number: int) -> None:
        self._group = group
        self._connection = connection
        self._id = ""

    async def belong(self) -> None:
        while not self._group.stable.is_set():
            joined = await self._join()
            if joined is not None and await self._sync(joined):
                self._group.synced(joined.generation_id)
                await self._stay(joined.generation_id)

    async def _join(self) -> JoinGroupResponse | None:
        answer: JoinGroupResponse = await self._connection.call(
            JoinGroupRequest(
                group_id=self._group.id,
                session_timeout_ms=TIMEOUT_MS,
                rebalance_timeout_ms=TIMEOUT_MS,
                member_id=self._id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=METADATA)],
            ),
            9,
        )
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._id = answer.member_id
            return None
        _none(answer.error_code, "JoinGroup")
        return answer

    async def _sync(self, joined: JoinGroupResponse) -> bool:
        assignments = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=ASSIGNMENT) for member in joined.members
        ]
        answer = await self._connection.call(
            SyncGroupRequest(
                group_id=self._group.id,
                generation_id=joined.generation_id,
                member_id=self._id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=assignments,
            ),
            5,
        )
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return False
        _none(answer.error_code, "SyncGroup")
        assert answer.assignment == ASSIGNMENT
        return True

    async def _stay(self, generation: int) -> None:
        """Until the group is stable or there is something better to do."""
        while True:
            await self._group.pause()
            if self._group.stable.is_set():
                return
            answer = await self._connection.call(
                HeartbeatRequest(group_id=self._group.id, generation_id=generation, member_id=self._id), 4
            )
            if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                return
            _none(answer.error_code, "Heartbeat")

    async def leave(self) -> None:
        answer = await self._connection.call(
            LeaveGroupRequest(group_id=self._group.id, members=[MemberIdentity(member_id=self._id)]), 5
        )
        _none(answer.error_code, "LeaveGroup")


class ConsumerMember:
    """KIP-848: heartbeats and nothing else."""

    def __init__(self, group: Group, connection: MemberConnection, number: int) -> None:
        self._group = group
        self._connection = connection
        # Members make up their own ids, uuids as Kafka's clients print them.
        self._id = f"{group.id}-{number:04}"
        self._epoch = 0
        self._owned: list[TopicPartitions] = []

    async def belong(self) -> None:
        changed = await self._heartbeat(
            ConsumerGroupHeartbeatRequest(
                group_id=self._group.id,
                member_id=self._id,
                member_epoch=0,
                rebalance_timeout_ms=TIMEOUT_MS,
                subscribed_topic_names=[self._group.topic],
                topic_partitions=[],
            )
        )
        while True:
            if not changed:
                await self._group.pause()
            if self._group.stable.is_set():
                return
            changed = await self._heartbeat(
                ConsumerGroupHeartbeatRequest(
                    group_id=self._group.id,
                    member_id=self._id,
                    member_epoch=self._epoch,
                    topic_partitions=self._owned if changed else None,
                )
            )

    async def _heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> bool:
        """Whether there is an assignment to acknowledge."""
        answer = await self._connection.call(request, 1)
        _none(answer.error_code, f"ConsumerGroupHeartbeat ({answer.error_message})")
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self._owned = answer.assignment.topic_partitions
            return True
        owned = frozenset(partition for topic in self._owned for partition in topic.partitions)
        self._group.holds(self, self._epoch, owned)
        return False

    async def leave(self) -> None:
        answer = await self._connection.call(
            ConsumerGroupHeartbeatRequest(group_id=self._group.id, member_id=self._id, member_epoch=-1), 1
        )
        _none(answer.error_code, "ConsumerGroupHeartbeat")


def _none(error_code: int, what: str) -> None:
    assert error_code == ErrorCode.NONE, f"{what} was refused with {ErrorCode(error_code).name}"
