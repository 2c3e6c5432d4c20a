"""Who may do what with transactions. Rights follow from the principal, never from what a request says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.batches import Record, batch_of
from tests.support.raw import RawClient, frame

from millstream.embedded import Broker
from millstream.protocol.codec import decode
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from millstream.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.describe_transactions import DescribeTransactionsRequest
from millstream.protocol.messages.end_txn import EndTxnRequest
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest
from millstream.protocol.messages.list_transactions import ListTransactionsRequest
from millstream.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from millstream.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from millstream.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from millstream.protocol.uuid import ZERO_UUID
from millstream.security.operations import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Right = tuple[Operation, ResourceType, str | None]

MINE, THEIRS, GROUP, TOPIC = "mine", "theirs", "group", "topic"
REFUSED_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class Denying:
    """Everything is allowed but what is listed."""

    def __init__(self) -> None:
        self.denied: list[Right] = []

    def allows(self, principal: str, host: str, operation: Operation, resource: ResourceType, name: str | None) -> bool:
        return (operation, resource, name) not in self.denied


@pytest.fixture(scope="module")
def embedded() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic(TOPIC, partitions=2)
        yield running


@pytest.fixture
def denying(embedded: Broker) -> Iterator[Denying]:
    node = embedded._running
    before, node.authorizer = node.authorizer, Denying()
    yield node.authorizer
    node.authorizer = before


@pytest.fixture
def client(embedded: Broker) -> Iterator[RawClient]:
    with RawClient("127.0.0.1", embedded.port) as connected:
        for kind, key in ((1, MINE), (0, GROUP)):
            connected.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 4)
        yield connected


def init(client: RawClient, name: str) -> tuple[int, int]:
    while True:
        answer = client.call(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 5)
        if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
            assert answer.error_code == ErrorCode.NONE
            return answer.producer_id, answer.producer_epoch


def produce(client: RawClient, name: str | None, producer: tuple[int, int], partition: int = 0) -> ErrorCode:
    records = batch_of(
        Record(b"value", timestamp_ms=0),
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        attributes=0x10,
    )
    data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=partition, records=records)])
    request = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=5000, topic_data=[data])
    return ErrorCode(client.call(request, 12).responses[0].partition_responses[0].error_code)


def end(client: RawClient, name: str, producer: tuple[int, int]) -> ErrorCode:
    request = EndTxnRequest(transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], committed=True)
    return ErrorCode(client.call(request, 5).error_code)


def offsets(client: RawClient, name: str, producer: tuple[int, int], version: int = 5) -> ErrorCode:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=None)
    request = TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=GROUP,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )
    return ErrorCode(client.call(request, version).topics[0].partitions[0].error_code)


def markers(client: RawClient, producer: tuple[int, int], coordinator_epoch: int = 0) -> ErrorCode:
    marker = WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
        coordinator_epoch=coordinator_epoch,
    )
    answer = client.call(WriteTxnMarkersRequest(markers=[marker]), 2)
    return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)


def test_without_the_right_to_the_id_nothing_is_possible(client: RawClient, denying: Denying) -> None:
    producer = init(client, MINE)
    denying.denied = [(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, MINE)]
    request = InitProducerIdRequest(transactional_id=MINE, transaction_timeout_ms=60_000)
    assert client.call(request, 5).error_code == REFUSED_ID
    assert produce(client, MINE, producer) is REFUSED_ID
    assert end(client, MINE, producer) is REFUSED_ID
    assert offsets(client, MINE, producer) is REFUSED_ID
    adding = AddOffsetsToTxnRequest(
        transactional_id=MINE, producer_id=producer[0], producer_epoch=producer[1], group_id=GROUP
    )
    assert client.call(adding, 4).error_code == REFUSED_ID
    partitions = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=MINE,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
    )
    (result,) = client.call(partitions, 3).results_by_topic_v3_and_below[0].results_by_partition
    assert result.partition_error_code == REFUSED_ID


def test_leaving_the_id_out_of_the_request_helps_nobody(client: RawClient, denying: Denying) -> None:
    """Bug 55, CVE-2018-17196: the batch says that it is transactional, whatever the request says."""
    producer = init(client, MINE)
    assert produce(client, None, producer) is REFUSED_ID


def test_naming_an_id_of_ones_own_does_not_open_that_of_another(client: RawClient, denying: Denying) -> None:
    producer, mine = init(client, THEIRS), init(client, MINE)
    denying.denied = [(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, THEIRS)]
    assert produce(client, MINE, producer) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert offsets(client, MINE, producer) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert end(client, MINE, producer) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert produce(client, MINE, mine) is ErrorCode.NONE
    assert end(client, MINE, mine) is ErrorCode.NONE


def test_a_client_that_is_no_broker_writes_no_markers(client: RawClient, denying: Denying) -> None:
    producer = init(client, MINE)
    assert produce(client, MINE, producer) is ErrorCode.NONE
    cluster = (ResourceType.CLUSTER, "kafka-cluster")
    denying.denied = [(Operation.CLUSTER_ACTION, *cluster), (Operation.ALTER, *cluster)]
    assert markers(client, producer) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert markers(client, producer, 2**31 - 1) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert end(client, MINE, producer) is ErrorCode.NONE


@pytest.mark.parametrize("verify_only", [True, False])
def test_a_client_that_is_no_broker_adds_no_partitions_as_one(
    client: RawClient, denying: Denying, verify_only: bool
) -> None:
    producer = init(client, MINE)
    denying.denied = [(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster")]
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=MINE,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
    )
    answer = client.call(AddPartitionsToTxnRequest(transactions=[transaction]), 5)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert answer.results_by_transaction == []


def test_a_topic_that_may_not_be_written_is_not_added(client: RawClient, denying: Denying) -> None:
    producer = init(client, MINE)
    denying.denied = [(Operation.WRITE, ResourceType.TOPIC, TOPIC)]
    assert produce(client, MINE, producer) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    (state,) = client.call(DescribeTransactionsRequest(transactional_ids=[MINE]), 0).transaction_states
    assert state.transaction_state == "Empty"


def test_offsets_need_the_group_and_the_topic(client: RawClient, denying: Denying) -> None:
    producer = init(client, MINE)
    denying.denied = [(Operation.READ, ResourceType.GROUP, GROUP)]
    assert offsets(client, MINE, producer) is ErrorCode.GROUP_AUTHORIZATION_FAILED
    denying.denied = [(Operation.READ, ResourceType.TOPIC, TOPIC)]
    assert offsets(client, MINE, producer) is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_what_may_not_be_described_is_not_told(client: RawClient, denying: Denying) -> None:
    init(client, MINE)
    init(client, THEIRS)
    denying.denied = [(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, THEIRS)]
    asked = DescribeTransactionsRequest(transactional_ids=[MINE, THEIRS, "nobody"])
    codes = [ErrorCode(state.error_code) for state in client.call(asked, 0).transaction_states]
    assert codes == [ErrorCode.NONE, REFUSED_ID, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND]
    listed = client.call(ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 2).transaction_states
    assert [row.transactional_id for row in listed] == [MINE]


@pytest.mark.parametrize("internal", ["__transaction_state", "__consumer_offsets"])
@pytest.mark.parametrize("client_id", ["anybody", "__admin_client"])
def test_nobody_writes_to_the_coordinators_own_topics(client: RawClient, internal: str, client_id: str) -> None:
    """Bug 55: not even a client with the right name."""
    data = TopicProduceData(
        name=internal,
        partition_data=[PartitionProduceData(index=0, records=batch_of(Record(b"value", b"key", timestamp_ms=0)))],
    )
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=5000, topic_data=[data])
    client.send_bytes(frame(request, 12, 7, client_id))
    answer = client.receive_frame()
    assert answer is not None
    response = decode(ProduceResponse, 12, answer, 5)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_transaction_ends_although_one_of_its_topics_was_deleted(embedded: Broker, client: RawClient) -> None:
    producer = init(client, MINE)
    embedded.create_topic("short-lived")
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=MINE,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[AddPartitionsToTxnTopic(name="short-lived", partitions=[0])],
    )
    client.call(AddPartitionsToTxnRequest(transactions=[transaction]), 5)
    assert produce(client, MINE, producer) is ErrorCode.NONE
    client.call(
        DeleteTopicsRequest(topics=[DeleteTopicState(name="short-lived", topic_id=ZERO_UUID)], timeout_ms=5000), 6
    )
    assert end(client, MINE, producer) is ErrorCode.NONE
    (state,) = client.call(DescribeTransactionsRequest(transactional_ids=[MINE]), 0).transaction_states
    assert state.transaction_state == "CompleteCommit"


def test_a_marker_fits_where_no_record_does(embedded: Broker, client: RawClient) -> None:
    producer = init(client, MINE)
    assert produce(client, MINE, producer) is ErrorCode.NONE
    config = AlterableConfig(name="max.message.bytes", config_operation=0, value="1")
    resource = AlterConfigsResource(resource_type=2, resource_name=TOPIC, configs=[config])
    client.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    assert end(client, MINE, producer) is ErrorCode.NONE
    (state,) = client.call(DescribeTransactionsRequest(transactional_ids=[MINE]), 0).transaction_states
    assert state.transaction_state == "CompleteCommit"
    config.config_operation, config.value = 1, None
    client.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)


LARGEST = 2**31 - 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda client, producer: (
            client.call(InitProducerIdRequest(transactional_id=MINE, transaction_timeout_ms=LARGEST), 5).error_code
        ),
        lambda client, producer: markers(client, (2**63 - 1, 32767), LARGEST),
        lambda client, producer: markers(client, (-1, -1), -1),
        lambda client, producer: end(client, MINE, (2**63 - 1, 32767)),
        lambda client, producer: end(client, MINE, (producer[0], 32767)),
        lambda client, producer: produce(client, MINE, (2**63 - 1, 32767), 1),
        lambda client, producer: (
            client.call(
                InitProducerIdRequest(
                    transactional_id=MINE, transaction_timeout_ms=1, producer_id=producer[0], producer_epoch=32767
                ),
                5,
            ).error_code
        ),
    ],
)
def test_the_largest_numbers_harm_nobody(
    client: RawClient, denying: Denying, ask: Callable[[RawClient, tuple[int, int]], int]
) -> None:
    producer = init(client, MINE)
    assert produce(client, MINE, producer) is ErrorCode.NONE
    ask(client, producer)
    outcome = end(client, MINE, producer)
    assert outcome in (ErrorCode.NONE, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE)
    following = init(client, MINE)
    assert produce(client, MINE, following) is ErrorCode.NONE
    assert end(client, MINE, following) is ErrorCode.NONE
