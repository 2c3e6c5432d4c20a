"""Every handler asks the authorizer, and a refusal is heard in the way of its API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.support.raw import RawClient

from millstream.embedded import Broker
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages import alter_configs, describe_producers, incremental_alter_configs
from millstream.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from millstream.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.describe_cluster import DescribeClusterRequest
from millstream.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from millstream.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from millstream.protocol.messages.describe_quorum import DescribeQuorumRequest
from millstream.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from millstream.protocol.messages.elect_leaders import ElectLeadersRequest
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest
from millstream.protocol.messages.list_config_resources import ListConfigResourcesRequest
from millstream.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millstream.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from millstream.protocol.messages.unregister_broker import UnregisterBrokerRequest
from millstream.protocol.messages.update_features import UpdateFeaturesRequest
from millstream.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CLUSTER_REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
GROUP_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED


class DenyAll:
    """Nobody may do anything."""

    def allows(self, *_: object) -> bool:
        return False


@pytest.fixture(scope="module")
def client() -> Iterator[RawClient]:
    with Broker() as broker:
        broker.create_topic("t")
        broker._running.authorizer = DenyAll()
        with RawClient("127.0.0.1", broker.port) as client:
            yield client


def codes(answer) -> set[ErrorCode]:
    """Every error code anywhere in an answer."""
    if isinstance(answer, list):
        return {code for each in answer for code in codes(each)}
    if isinstance(answer, msgspec.Struct):
        fields = {name: getattr(answer, name) for name in answer.__struct_fields__}
        own = {ErrorCode(value) for name, value in fields.items() if name == "error_code"}
        return own.union(*(codes(value) for value in fields.values()))
    return set()


@pytest.mark.parametrize(
    ("request_", "version", "code"),
    [
        (
            CreateTopicsRequest(
                topics=[CreatableTopic(name="x", num_partitions=1, replication_factor=1, assignments=[], configs=[])]
            ),
            7,
            TOPIC_REFUSED,
        ),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="t", topic_id=ZERO_UUID)], timeout_ms=0), 6, TOPIC_REFUSED),
        (
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name="t", count=2, assignments=None)], timeout_ms=0, validate_only=False
            ),
            3,
            TOPIC_REFUSED,
        ),
        (
            DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=0)])],
                timeout_ms=0,
            ),
            2,
            TOPIC_REFUSED,
        ),
        (MetadataRequest(topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name="new")]), 12, TOPIC_REFUSED),
        (DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]), 0, TOPIC_REFUSED),
        (
            ListOffsetsRequest(
                replica_id=-1,
                topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])],
            ),
            11,
            TOPIC_REFUSED,
        ),
        (
            OffsetForLeaderEpochRequest(
                topics=[
                    OffsetForLeaderTopic(topic="t", partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)])
                ]
            ),
            4,
            TOPIC_REFUSED,
        ),
        (
            describe_producers.DescribeProducersRequest(
                topics=[describe_producers.TopicRequest(name="t", partition_indexes=[0])]
            ),
            0,
            TOPIC_REFUSED,
        ),
        *(
            (
                DescribeConfigsRequest(
                    resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)]
                ),
                4,
                code,
            )
            for kind, name, code in ((2, "t", TOPIC_REFUSED), (4, "1", CLUSTER_REFUSED), (32, "g", GROUP_REFUSED))
        ),
        (
            incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=[
                    incremental_alter_configs.AlterConfigsResource(resource_type=2, resource_name="t", configs=[])
                ],
                validate_only=False,
            ),
            1,
            TOPIC_REFUSED,
        ),
        (
            alter_configs.AlterConfigsRequest(
                resources=[alter_configs.AlterConfigsResource(resource_type=4, resource_name="", configs=[])],
                validate_only=False,
            ),
            2,
            CLUSTER_REFUSED,
        ),
        (ListConfigResourcesRequest(), 1, CLUSTER_REFUSED),
        (UpdateFeaturesRequest(feature_updates=[]), 2, CLUSTER_REFUSED),
        (ElectLeadersRequest(topic_partitions=None), 2, CLUSTER_REFUSED),
        (AlterPartitionReassignmentsRequest(topics=[]), 1, CLUSTER_REFUSED),
        (ListPartitionReassignmentsRequest(topics=None), 0, CLUSTER_REFUSED),
        (UnregisterBrokerRequest(broker_id=9), 0, CLUSTER_REFUSED),
        (DescribeQuorumRequest(topics=[]), 2, CLUSTER_REFUSED),
        (DescribeLogDirsRequest(topics=None), 5, CLUSTER_REFUSED),
        (InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 5, CLUSTER_REFUSED),
        (FindCoordinatorRequest(key="g"), 1, GROUP_REFUSED),
        (FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4, GROUP_REFUSED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, msgspec.Struct) else None,
)
def test_a_refusal_is_heard(client: RawClient, request_, version, code):
    assert codes(client.call(request_, version)) - {ErrorCode.NONE} == {code}


def test_a_list_leaves_out_what_may_not_be_seen(client: RawClient):
    assert client.call(MetadataRequest(topics=None), 12).topics == []
    assert client.call(DescribeTopicPartitionsRequest(topics=[]), 0).topics == []


def test_a_topic_that_may_not_be_described_is_not_made(client: RawClient):
    client.call(MetadataRequest(topics=[MetadataRequestTopic(name="made")]), 12)
    (answer,) = client.call(MetadataRequest(topics=[MetadataRequestTopic(name="made")]), 12).topics
    assert answer.error_code == TOPIC_REFUSED


def test_authorized_operations_are_none(client: RawClient):
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert client.call(request, 2).cluster_authorized_operations == 0
