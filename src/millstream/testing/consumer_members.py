"""A member of a group of the newer kind (KIP-848): one request says all, and the coordinator assigns."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from millstream.client.client import CoordinatorOf
from millstream.client.errors import ClientError, Refusal, refuse
from millstream.client.groups import LAST_VERSION_WITH_NAMES, committed_offsets
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from millstream.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.testing.history import Committed, Owned, Polled
from millstream.testing.readers import read_once
from millstream.testing.workers import Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.protocol.uuid import Uuid
    from millstream.testing.cluster import SimulatedCluster
    from millstream.testing.history import History, Place

JOINS, LEAVES = 0, -1
ANSWER_MS = 5_000
REBALANCE_TIMEOUT_MS = 15_000
# The coordinator does not know us, or not with this epoch: what we had is somebody else's.
_GONE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.STALE_MEMBER_EPOCH})


class ConsumerMember(Worker):
    """Heartbeats, takes what it is assigned and gives back what it is not, reads and commits."""

    def __init__(
        self, cluster: SimulatedCluster, name: str, history: History, *, group: str, topics: Sequence[str]
    ) -> None:
        super().__init__(cluster, name, history)
        self._group = group
        self._topics = list(topics)
        self._names: dict[Uuid, str] = {}
        self._ids: dict[str, Uuid] = {}
        self._epoch = JOINS
        self._has_news = True
        self._positions: dict[Place, int] = {}
        self._fresh: dict[Place, None] = {}

    async def step(self) -> None:
        if len(self._ids) < len(self._topics):
            for topic in (await self.client.metadata.topics(self._topics)).values():
                if not isinstance(topic, Refusal):
                    self._names[topic.id], self._ids[topic.name] = topic.name, topic.id
            if len(self._ids) < len(self._topics):
                return  # they are so new that not every broker has heard of them
        try:
            await self._heartbeat()
            if self._positions:
                await self._read(self.random.choice(list(self._positions)))
        except Refusal as refusal:
            if refusal.code not in _GONE:
                raise
            self._epoch, self._has_news = JOINS, True
            self._positions.clear()

    async def _heartbeat(self) -> None:
        joins = self._epoch == JOINS
        answer = await self._say(
            ConsumerGroupHeartbeatRequest(
                group_id=self._group,
                member_id=self.name,
                member_epoch=self._epoch,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if joins else -1,
                subscribed_topic_names=self._topics if joins else None,
                topic_partitions=self._owned() if joins or self._has_news else None,
            )
        )
        has_entered = answer.member_epoch != self._epoch
        self._epoch, self._has_news = answer.member_epoch, False
        if answer.assignment is not None:
            await self._take(answer.assignment)
        elif has_entered:
            # It takes what it has along into the new epoch.
            self._note_owned(list(self._positions))

    async def _say(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        async def attempt() -> ConsumerGroupHeartbeatResponse:
            answer: ConsumerGroupHeartbeatResponse = await self.client.call(request, node=CoordinatorOf(self._group))
            refuse(answer.error_code, answer.error_message, subject=f"group {self._group!r}")
            return answer

        return await self.client.retrying(attempt, timeout_ms=ANSWER_MS)

    def _owned(self) -> list[TopicPartitions]:
        topics = dict.fromkeys(topic for topic, _ in self._positions)
        return [
            TopicPartitions(
                topic_id=self._ids[topic], partitions=sorted(index for name, index in self._positions if name == topic)
            )
            for topic in topics
        ]

    async def _take(self, assignment: Assignment) -> None:
        wanted: list[Place] = [
            (self._names[each.topic_id], index) for each in assignment.topic_partitions for index in each.partitions
        ]
        self._has_news = True
        for place in [place for place in self._positions if place not in wanted]:
            del self._positions[place]
        self._note_owned(wanted)
        await self._position([place for place in wanted if place not in self._positions])

    def _note_owned(self, places: list[Place]) -> None:
        self.history.owned += [Owned(self._group, self._epoch, place, self.name) for place in places]

    async def _position(self, places: list[Place]) -> None:
        """Read on from what the group has committed."""
        standing = await committed_offsets(self.client, self._group, places) if places else {}
        for place in places:
            self._positions[place] = standing[place].offset if place in standing else 0
            self._fresh[place] = None

    async def _read(self, place: Place) -> None:
        records, position = await read_once(self.client, place, self._positions[place], committed_only=True)
        if records:
            fresh = frozenset({place}) if place in self._fresh else frozenset()
            self._fresh.pop(place, None)
            found = tuple((place, offset, value) for offset, value in records)
            self.history.polled.append(Polled(self.name, found, fresh=fresh))
            try:
                await self._commit(place, position)
            except ClientError:
                # Nobody knows whether it counts: the place is read from what the group says, once that can be heard.
                self._epoch, self._has_news = JOINS, True
                self._positions.clear()
                raise
            self.history.committed.append(Committed(self._group, place, position))
        self._positions[place] = position

    async def _commit(self, place: Place, offset: int) -> None:
        part = OffsetCommitRequestPartition(partition_index=place[1], committed_offset=offset, committed_metadata="")
        answer = await self.client.call(
            OffsetCommitRequest(
                group_id=self._group,
                generation_id_or_member_epoch=self._epoch,
                member_id=self.name,
                topics=[OffsetCommitRequestTopic(name=place[0], partitions=[part])],
            ),
            node=CoordinatorOf(self._group),
            timeout_ms=ANSWER_MS,
            at_most=LAST_VERSION_WITH_NAMES,
        )
        refuse(answer.topics[0].partitions[0].error_code, subject=f"group {self._group!r}")

    async def finish(self) -> None:
        leaving = ConsumerGroupHeartbeatRequest(group_id=self._group, member_id=self.name, member_epoch=LEAVES)
        with suppress(ClientError):
            await self._say(leaving)
