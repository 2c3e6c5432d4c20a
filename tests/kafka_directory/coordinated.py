"""Members and transactional producers that outlive their broker, speaking the protocol word by word.

A real client would notice that its broker went away, and what it did then would be up to it. These don't: a member
keeps its id and generation, a producer its id, epoch and sequence, and each goes on with the next broker where it
stood. `tests/kafka_directory/state.py` asks a broker what it knows of them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from millstream.protocol.codec import encode
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from millstream.protocol.messages.data.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from millstream.protocol.messages.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from millstream.protocol.messages.end_txn import EndTxnRequest
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.heartbeat import HeartbeatRequest
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest
from millstream.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from millstream.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from millstream.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.batches import Record, batch_of
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.raw import RawClient

TRANSACTIONAL = 0x10
# A broker that has just started says these for a moment; a client tries again.
PASSING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


def heard(ask: Callable[[], Any], code_of: Callable[[Any], int] = lambda answer: answer.error_code) -> Any:
    """The answer, once the broker is ready to give one; it must be no refusal."""

    def answered() -> Any:
        answer = ask()
        return None if code_of(answer) in PASSING else answer

    answer = wait_until(answered, "an answer", within_s=120, every_s=0.05)
    assert code_of(answer) == ErrorCode.NONE, f"{ErrorCode(code_of(answer)).name}: {answer}"
    return answer


def find_coordinators(client: RawClient) -> None:
    """The question that makes a broker create its internal topics."""
    for key_type in (0, 1):
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["anybody"])
        heard(lambda request=request: client.call(request, 4), lambda answer: int(answer.coordinators[0].error_code))


def commit_offsets(
    client: RawClient,
    group: str,
    topic: str,
    offsets: dict[int, int],
    *,
    member: str = "",
    epoch: int = -1,
    **more: Any,
) -> None:
    """Offsets with a note of where they come from; without a member it is a commit from outside."""
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=0,
            committed_metadata=f"{group} at {offset}",
        )
        for partition, offset in offsets.items()
    ]
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)],
        **more,
    )
    heard(lambda: client.call(request, 9), lambda answer: int(answer.topics[0].partitions[0].error_code))


class ClassicMember:
    """The one member of a classic group, so also its leader."""

    def __init__(
        self, group: str, topic: str, *, protocol_type: str = "consumer", instance_id: str | None = None
    ) -> None:
        self.group = group
        self.topic = topic
        self.member_id = ""
        self.generation = -1
        self._protocol_type = protocol_type
        self._instance_id = instance_id
        # Only consumers' words are understood by a coordinator; those of others are nobody's business but theirs.
        understood = protocol_type == "consumer"
        subscription = ConsumerProtocolSubscription(topics=[topic])
        assignment = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic=topic, partitions=[0, 1, 2])])
        self._metadata = b"\0\1" + encode(subscription, 1) if understood else b"\xff opaque"
        self._assignment = b"\0\1" + encode(assignment, 1) if understood else b"\xfe opaque too"

    def join(self, client: RawClient) -> None:
        """Enter, or enter again: either way a new generation."""

        def answered() -> Any:
            answer = client.call(self._join_request(), 9)
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
                answer = client.call(self._join_request(), 9)
            return answer

        joined = heard(answered)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type=self._protocol_type,
            protocol_name="mine",
            assignments=[SyncGroupRequestAssignment(member_id=self.member_id, assignment=self._assignment)],
        )
        heard(lambda: client.call(request, 5))

    def _join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=600_000,
            rebalance_timeout_ms=600_000,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type=self._protocol_type,
            protocols=[JoinGroupRequestProtocol(name="mine", metadata=self._metadata)],
        )

    def heartbeat(self, client: RawClient) -> None:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
        )
        heard(lambda: client.call(request, 4))

    def commit(self, client: RawClient, offsets: dict[int, int]) -> None:
        instance = {"group_instance_id": self._instance_id}
        commit_offsets(
            client, self.group, self.topic, offsets, member=self.member_id, epoch=self.generation, **instance
        )


class NewMember:
    """A member by KIP-848, which owns what it is told to own at once."""

    def __init__(self, group: str, member_id: str, **subscription: Any) -> None:
        self.group = group
        self.member_id = member_id
        self.epoch = 0
        self.owned: list[Any] = []
        self._subscription = subscription

    def join(self, client: RawClient) -> None:
        self.epoch = 0
        heard(lambda: self._beat(client, rebalance_timeout_ms=600_000, topic_partitions=[], **self._subscription))
        # A pattern is looked up besides, and its topics come with a later heartbeat.
        wait_until(lambda: self.heartbeat(client) or self.owned, "an assignment")
        self.heartbeat(client)

    def heartbeat(self, client: RawClient) -> None:
        heard(lambda: self._beat(client, topic_partitions=self.owned))

    def _beat(self, client: RawClient, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, **fields
        )
        answer = client.call(request, 1)
        if answer.error_code == ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = answer.assignment.topic_partitions
        return answer

    def commit(self, client: RawClient, topic: str, offsets: dict[int, int]) -> None:
        commit_offsets(client, self.group, topic, offsets, member=self.member_id, epoch=self.epoch)


class TransactionalProducer:
    """A producer of KIP-890's kind: partitions are added by writing to them, and every end brings a new epoch."""

    def __init__(self, name: str, topic: str) -> None:
        self.name = name
        self.topic = topic
        self.producer_id = -1
        self.epoch = -1
        self._sequences: dict[int, int] = {}

    def init(self, client: RawClient) -> None:
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=600_000)
        answer = heard(lambda: client.call(request, 5))
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    def write(self, client: RawClient, partition: int, *values: str) -> None:
        sequence = self._sequences.get(partition, 0)
        now_ms = int(time.time() * 1000)
        batch = batch_of(
            *(Record(value.encode(), timestamp_ms=now_ms) for value in values),
            attributes=TRANSACTIONAL,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
        )
        data = TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
        request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=30_000, topic_data=[data])
        heard(
            lambda: client.call(request, 12), lambda answer: int(answer.responses[0].partition_responses[0].error_code)
        )
        self._sequences[partition] = sequence + len(values)

    def commit_offset(self, client: RawClient, group: str, partition: int, offset: int) -> None:
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=self.topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset, committed_metadata=f"by {self.name}"
                        )
                    ],
                )
            ],
        )
        heard(lambda: client.call(request, 5), lambda answer: int(answer.topics[0].partitions[0].error_code))

    def end(self, client: RawClient, *, commit: bool) -> None:
        """The end is decided when the answer comes; the markers may still be on their way."""
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )
        answer = heard(lambda: client.call(request, 5))
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
