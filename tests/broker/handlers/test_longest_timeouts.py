"""Bug 51, KAFKA-13126: the largest number in every field that says how long something may take; nothing is late."""

from __future__ import annotations

import importlib
import pkgutil
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.batches import Record, batch_of
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

from millstream.broker import handlers
from millstream.broker.dispatch import HANDLERS
from millstream.embedded import Broker
from millstream.protocol.apis import api
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.add_raft_voter import AddRaftVoterRequest
from millstream.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from millstream.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from millstream.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.heartbeat import HeartbeatRequest
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest
from millstream.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from millstream.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millstream.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from millstream.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.protocol.messages.sync_group import SyncGroupRequest
from millstream.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from millstream.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 2**31 - 1
FOR_EVER = 2**63 - 1
TOPIC = "patient"
OTHER = "other"
FIELDS = ("max_wait_ms", "retention_time_ms")
SETTINGS = {
    "group.max.session.timeout.ms": LONGEST,
    "transaction.max.timeout.ms": LONGEST,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}

# Those that need no more than one question: what is asked in which version, and what is answered.
QUESTIONS: list[tuple[Any, int, ErrorCode]] = [
    (
        ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])],
            timeout_ms=LONGEST,
        ),
        10,
        ErrorCode.NONE,
    ),
    (
        CreateTopicsRequest(
            topics=[CreatableTopic(name=OTHER, num_partitions=1, replication_factor=1, assignments=[], configs=[])],
            timeout_ms=LONGEST,
        ),
        7,
        ErrorCode.NONE,
    ),
    (
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=OTHER, count=2, assignments=None)],
            timeout_ms=LONGEST,
            validate_only=False,
        ),
        3,
        ErrorCode.NONE,
    ),
    (
        DeleteTopicsRequest(topics=[DeleteTopicState(name=OTHER, topic_id=ZERO_UUID)], timeout_ms=LONGEST),
        6,
        ErrorCode.NONE,
    ),
    (
        DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=0)])],
            timeout_ms=LONGEST,
        ),
        2,
        ErrorCode.NONE,
    ),
    (
        ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=TOPIC, partitions=[0])], timeout_ms=LONGEST),
        2,
        ErrorCode.ELECTION_NOT_NEEDED,
    ),
    (
        AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=TOPIC, partitions=[ReassignablePartition(partition_index=0)])],
            timeout_ms=LONGEST,
        ),
        1,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ),
    (ListPartitionReassignmentsRequest(timeout_ms=LONGEST), 0, ErrorCode.NONE),
    (
        UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=1)],
            timeout_ms=LONGEST,
            validate_only=True,
        ),
        2,
        ErrorCode.NONE,
    ),
]
IN_TESTS_OF_THEIR_OWN = (
    ProduceRequest,
    FetchRequest,
    JoinGroupRequest,
    ConsumerGroupHeartbeatRequest,
    InitProducerIdRequest,
    OffsetCommitRequest,
    # Only controllers' listeners take it (tests/broker/test_voter_requests.py).
    AddRaftVoterRequest,
)


@pytest.fixture(scope="module")
def embedded() -> Iterator[Broker]:
    with Broker(settings=SETTINGS) as running:
        running.create_topic(TOPIC)
        with RawClient("127.0.0.1", running.port) as client:
            wait_until(lambda: coordinators_serve(client), "the coordinators", within_s=60)
        yield running


def coordinators_serve(client: RawClient) -> bool:
    for kind, key in ((0, "first"), (1, "first")):
        client.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 4)
    groups = client.call(OffsetFetchRequest(group_id="first", topics=[]), 5)
    transactions = client.call(InitProducerIdRequest(transactional_id="first", transaction_timeout_ms=60_000), 5)
    return groups.error_code == transactions.error_code == ErrorCode.NONE


@pytest.fixture
def client(embedded: Broker) -> Iterator[RawClient]:
    with RawClient("127.0.0.1", embedded.port, timeout_s=120) as connected:
        yield connected


def produce(client: RawClient, value: bytes) -> int:
    data = PartitionProduceData(index=0, records=batch_of(Record(value)))
    request = ProduceRequest(
        acks=-1, timeout_ms=LONGEST, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
    )
    return int(client.call(request, 9).responses[0].partition_responses[0].error_code)


def errors(message: Any) -> set[int]:
    """All error codes anywhere in an answer."""
    if isinstance(message, list):
        return set().union(*map(errors, message))
    found: set[int] = set()
    for name in getattr(message, "__struct_fields__", ()):
        value = getattr(message, name)
        found |= {value} if name == "error_code" else errors(value)
    return found


def test_every_such_field_is_looked_at() -> None:
    for module in pkgutil.iter_modules(handlers.__path__):
        importlib.import_module(f"{handlers.__name__}.{module.name}")
    waiting = {
        api(key).request
        for key in HANDLERS
        if any(field.endswith("timeout_ms") or field in FIELDS for field in api(key).request.__struct_fields__)
    }
    assert waiting == {type(question) for question, _, _ in QUESTIONS} | set(IN_TESTS_OF_THEIR_OWN)


def test_questions_of_administrators_are_answered(client: RawClient) -> None:
    for question, version, expected in QUESTIONS:
        assert errors(client.call(question, version)) - {0} == {expected} - {0}, type(question).__name__


def test_a_write_is_acknowledged(client: RawClient) -> None:
    assert produce(client, b"a") == ErrorCode.NONE


def test_a_fetch_waits_until_something_comes(embedded: Broker, client: RawClient) -> None:
    embedded.create_topic("awaited")
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    wanted = FetchTopic(topic="awaited", partitions=[partition])
    client.send(FetchRequest(max_wait_ms=LONGEST, min_bytes=1, session_epoch=-1, topics=[wanted]), 12)
    data = PartitionProduceData(index=0, records=batch_of(Record(b"at last")))
    request = ProduceRequest(
        acks=-1, timeout_ms=LONGEST, topic_data=[TopicProduceData(name="awaited", partition_data=[data])]
    )
    written = threading.Timer(0.2, lambda: _ask_once(embedded, request))
    written.start()
    (topic,) = client.receive().responses
    written.join()
    assert b"at last" in bytes(topic.partitions[0].records), "the wait ended before anything came"


def _ask_once(embedded: Broker, request: ProduceRequest) -> None:
    with RawClient("127.0.0.1", embedded.port) as other:
        other.call(request, 9)


def test_a_member_of_a_classic_group_stays(client: RawClient) -> None:
    def join(member_id: str) -> Any:
        return client.call(
            JoinGroupRequest(
                group_id="classic",
                session_timeout_ms=LONGEST,
                rebalance_timeout_ms=LONGEST,
                member_id=member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            ),
            9,
        )

    joined = join(join("").member_id)
    assert joined.error_code == ErrorCode.NONE
    member = {"group_id": "classic", "generation_id": joined.generation_id, "member_id": joined.member_id}
    synced = client.call(SyncGroupRequest(**member, protocol_type="consumer", protocol_name="range", assignments=[]), 5)
    assert synced.error_code == ErrorCode.NONE
    assert client.call(HeartbeatRequest(**member), 4).error_code == ErrorCode.NONE


def test_a_member_of_a_consumer_group_stays(client: RawClient) -> None:
    def beat(member_id: str, epoch: int, topics: list[str] | None) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id="consumer",
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=LONGEST,
            subscribed_topic_names=topics,
            topic_partitions=[] if epoch == 0 else None,
        )
        return client.call(request, 1)

    joined = beat("member-1", 0, [TOPIC])
    assert (joined.error_code, joined.member_epoch > 0) == (ErrorCode.NONE, True)
    assert beat("member-1", joined.member_epoch, None).error_code == ErrorCode.NONE


def test_a_transactional_id_is_given(client: RawClient) -> None:
    answer = client.call(InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=LONGEST), 5)
    assert answer.error_code == ErrorCode.NONE


def test_a_committed_offset_stays(client: RawClient) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]
    request = OffsetCommitRequest(group_id="group", member_id="", retention_time_ms=FOR_EVER, topics=topics)
    assert client.call(request, 4).topics[0].partitions[0].error_code == ErrorCode.NONE
    wanted = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    found = client.call(OffsetFetchRequest(group_id="group", topics=wanted), 5)
    assert found.topics[0].partitions[0].committed_offset == 7
