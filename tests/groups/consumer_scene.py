"""A shard with topics and members of the new consumer protocol, on virtual time."""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Any

from millstream.groups.classic.member import Client
from millstream.groups.consumer.describing import decide_consumer_describe
from millstream.groups.consumer.gathering import GATHERED_MS_MAX, LOOK_EVERY_MS
from millstream.groups.consumer.heartbeat import decide_consumer_heartbeat
from millstream.groups.machine import GroupMachine
from millstream.metadata.image import MetadataImage, PartitionImage, TopicImage, Topics
from millstream.protocol.codec import decode, encode
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from millstream.protocol.messages.data.consumer_protocol_assignment import ConsumerProtocolAssignment
from millstream.protocol.messages.data.consumer_protocol_assignment import TopicPartition as AssignedTopic
from millstream.protocol.messages.data.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from millstream.protocol.uuid import Uuid
from tests.groups.classic_scene import GROUP, Pending, Scene

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.groups.consumer.group import ConsumerGroup

# What a member reads: pairs of topic and partition.
Owned = frozenset[tuple[str, int]]
SESSION_MS = 45_000
ASSIGNMENT_INTERVAL_MS = 1_000
CLIENT = Client("client", "/127.0.0.1")


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().rjust(16, b"."))


def image_of(topics: Mapping[str, int], offset: int) -> MetadataImage:
    partition = PartitionImage(replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0)
    by_name = {
        name: TopicImage(name=name, id=topic_id(name), partitions=dict.fromkeys(range(count), partition))
        for name, count in topics.items()
    }
    return MetadataImage(offset=offset, topics=Topics(by_name, {topic.id: topic for topic in by_name.values()}))


def listed(owned: Iterable[tuple[str, int]]) -> list[TopicPartitions]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(owned):
        by_topic.setdefault(topic, []).append(partition)
    return [TopicPartitions(topic_id=topic_id(topic), partitions=indexes) for topic, indexes in by_topic.items()]


def pairs(by_id: Mapping[Uuid, Iterable[int]]) -> Owned:
    return frozenset(
        (bytes(id_).decode().lstrip("."), partition) for id_, partitions in by_id.items() for partition in partitions
    )


def _joining(topics: Iterable[str]) -> dict[str, Any]:
    return {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": list(topics)}


class ConsumerScene(Scene):
    def __init__(self, topics: Mapping[str, int] | None = None, **settings: str | int) -> None:
        self.topics = dict(topics or {"t": 3})
        self.image = image_of(self.topics, 1)
        self.unseen: frozenset[str] = frozenset()
        # Each heartbeat is answered at once; tests of the gathering say otherwise.
        super().__init__(**{"group_coordinator_append_linger_ms": 0} | settings)

    def _empty_machine(self) -> GroupMachine:
        return GroupMachine(lambda: self.settings, lambda: self.image, lambda: Uuid(next(self._uuids).to_bytes(16)))

    def set_topics(self, **topics: int) -> None:
        self.topics = topics
        self.image = image_of(topics, self.image.offset + 1)

    @property
    def consumers(self) -> ConsumerGroup:
        return self.machine.groups[GROUP]  # type: ignore[return-value]

    @property
    def state_name(self) -> str:
        return self.machine.groups[GROUP].state_name(self.now_ms)

    # --- the new protocol

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        version: int = 1,
        owned: Iterable[tuple[str, int]] | None = None,
        **told: Any,
    ) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat and its answer; who is gathered with others is given the time for it."""
        pending = self.begin_to_beat(member_id, epoch, version=version, owned=owned, **told)
        if pending.answer is None:
            self.pass_ms(GATHERED_MS_MAX + LOOK_EVERY_MS)
        assert pending.answer is not None, "heartbeats never wait for long"
        answer: ConsumerGroupHeartbeatResponse = pending.answer
        return answer

    def begin_to_beat(
        self,
        member_id: str,
        epoch: int,
        *,
        version: int = 1,
        owned: Iterable[tuple[str, int]] | None = None,
        **told: Any,
    ) -> Pending:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=epoch,
            topic_partitions=None if owned is None else listed(owned),
            **told,
        )
        # As on the wire: what a version does not have is not heard.
        request = decode(ConsumerGroupHeartbeatRequest, version, encode(request, version))
        return self.submit(
            "beat",
            member_id,
            lambda token: self._decided(request, version, token),
            lambda code: ConsumerGroupHeartbeatResponse(error_code=code, member_epoch=0, heartbeat_interval_ms=0),
        )

    def _decided(self, request: ConsumerGroupHeartbeatRequest, version: int, token: int) -> Any:
        self.refusal = ""
        try:
            return decide_consumer_heartbeat(
                self.machine, request, version, CLIENT, lambda topic: topic not in self.unseen, token, self.now_ms
            )
        except BrokerError as refusal:
            self.refusal = refusal.message
            raise

    def enter(self, member_id: str, *topics: str, **told: Any) -> ConsumerGroupHeartbeatResponse:
        """Join."""
        return self.beat(member_id, 0, owned=(), **_joining(topics) | told)

    def begin_to_enter(self, member_id: str, *topics: str, **told: Any) -> Pending:
        return self.begin_to_beat(member_id, 0, owned=(), **_joining(topics) | told)

    def describe(self) -> Any:
        return decide_consumer_describe(self.machine, GROUP, self.now_ms).response

    def owned_by(self, member_id: str) -> Owned:
        """What the group thinks that a member may be reading."""
        member = self.consumers.members[member_id]
        return pairs(member.assigned) | pairs(member.revoking)

    def settle(self, *member_ids: str, rounds: int = 12) -> None:
        """Members do what they are told, at once, until all is still."""
        for _ in range(rounds):
            self.pass_ms(ASSIGNMENT_INTERVAL_MS)
            for member_id in member_ids:
                member = self.consumers.members[member_id]
                answer = self.beat(
                    member_id, member.epoch, owned=pairs(member.assigned), instance_id=member.instance_id
                )
                assert answer.error_code == ErrorCode.NONE, answer
        assert self.state_name == "Stable", self.describe()

    # --- classic members

    def subscription(self, *topics: str, owned: Iterable[tuple[str, int]] = ()) -> dict[str, bytes]:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(owned):
            by_topic.setdefault(topic, []).append(partition)
        told = ConsumerProtocolSubscription(
            topics=list(topics),
            owned_partitions=[TopicPartition(topic=topic, partitions=indexes) for topic, indexes in by_topic.items()],
        )
        return {"cooperative": pack(">h", 1) + encode(told, 1)}


def assigned_in(data: bytes) -> Owned:
    """What SyncGroup brought."""
    told = decode(ConsumerProtocolAssignment, 1, data, 2)
    return frozenset((topic.topic, partition) for topic in told.assigned_partitions for partition in topic.partitions)


def assignment_of(owned: Iterable[tuple[str, int]]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(owned):
        by_topic.setdefault(topic, []).append(partition)
    told = ConsumerProtocolAssignment(
        assigned_partitions=[AssignedTopic(topic=topic, partitions=indexes) for topic, indexes in by_topic.items()]
    )
    return pack(">h", 1) + encode(told, 1)


def stored_state(machine: GroupMachine) -> dict[str, Any]:
    """All that a replay has to bring back."""
    group = machine.groups.get(GROUP)
    if group is None:
        return {}
    if group.type_name == "classic":
        # Most of a classic group is soft state: its own tests say what is not.
        return {"kind": "classic"}
    consumers: Any = group
    return {
        "epoch": consumers.epoch,
        "hash": consumers.metadata_hash,
        "members": consumers.members,
        "static": consumers.static_members,
        "target": consumers.target,
        "target epoch": (consumers.target_epoch, consumers.target_timestamp_ms),
        "claims": consumers.partition_epochs,
        "names": dict(consumers.subscriptions.names),
        "patterns": dict(consumers.subscriptions.patterns),
        "resolved": consumers.subscriptions.resolved,
        "assignors": dict(consumers.subscriptions.assignors),
        "classic members": (consumers.classic_count, dict(consumers.classic_protocols)),
    }
