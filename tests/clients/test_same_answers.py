"""Where the protocol leaves room, Apache Kafka's answer is the right one: both brokers are asked the same and compared.

Both start with the same topic: two partitions, ten records in the first. A question is one request; the answers are
compared whole, except for what differs between any two clusters (ids, addresses, clocks) and the words of messages.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages import alter_configs, incremental_alter_configs
from millstream.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from millstream.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from millstream.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from millstream.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from millstream.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from millstream.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest
from millstream.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from millstream.protocol.uuid import ZERO_UUID, Uuid
from tests.support.batches import Record, batch_of
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.apache_kafka import ApacheKafka
    from tests.support.millstream_process import MillstreamProcess

pytestmark = [pytest.mark.clients, pytest.mark.java]

TOPIC = "same-answers"
# For what only one of the two writes down: later questions must not see it.
OTHER_TOPIC = "other-answers"
NOBODY = Uuid(b"x" * 16)
NOW_MS = int(time.time() * 1000)
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
# What differs between two clusters without meaning anything.
VOLATILE = frozenset(
    {"error_message", "throttle_time_ms", "topic_id", "host", "port", "cluster_id", "session_id", "producer_id",
     "log_append_time_ms", "last_timestamp", "batch_index_error_message", "documentation", "synonyms", "current_leader",
     "leader_epoch", "records", "node_endpoints"}
)  # fmt: skip


def new_topic(name: str, partitions: int = 1, replicas: int = 1, **others: Any) -> CreatableTopic:
    return CreatableTopic(
        **{"name": name, "num_partitions": partitions, "replication_factor": replicas, "assignments": [], "configs": []}
        | others
    )


def create(*topics: CreatableTopic, validate_only: bool = True) -> tuple[Any, int]:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=validate_only), 7


def assigned(*replicas: list[int], first: int = 0) -> list[CreatableReplicaAssignment]:
    return [
        CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in enumerate(replicas, first)
    ]


def config(name: str, value: str | None) -> list[CreatableTopicConfig]:
    return [CreatableTopicConfig(name=name, value=value)]


def grow(count: int, topic: str = TOPIC, assignments: list[list[int]] | None = None) -> tuple[Any, int]:
    placed = None if assignments is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=placed)
    return CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000, validate_only=True), 3


def offsets(
    timestamp: int, partition: int = 0, version: int = 11, epoch: int = -1, topic: str = TOPIC
) -> tuple[Any, int]:
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    topics = [ListOffsetsTopic(name=topic, partitions=[wanted])]
    return ListOffsetsRequest(replica_id=-1, topics=topics, timeout_ms=10_000), version


def fetch(offset: int, partition: int = 0, epoch: int = -1, topic: str = TOPIC) -> tuple[Any, int]:
    wanted = FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch
    )
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics), 12


def set_config(
    operation: int, name: str, value: str | None, resource: str = TOPIC, kind: int = TOPIC_RESOURCE
) -> tuple[Any, int]:
    change = incremental_alter_configs.AlterableConfig(name=name, config_operation=operation, value=value)
    place = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=[change])
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[place], validate_only=True), 1


def replace_configs(name: str, value: str | None) -> tuple[Any, int]:
    change = alter_configs.AlterableConfig(name=name, value=value)
    place = alter_configs.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configs=[change])
    return alter_configs.AlterConfigsRequest(resources=[place], validate_only=True), 2


def describe(kind: int, name: str, keys: list[str] | None = None) -> tuple[Any, int]:
    wanted = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    return DescribeConfigsRequest(resources=[wanted]), 4


def delete_records(offset: int, partition: int = 0) -> tuple[Any, int]:
    place = DeleteRecordsPartition(partition_index=partition, offset=offset)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=[place])], timeout_ms=10_000), 2


def reassign(replicas: list[int] | None, partition: int = 0) -> tuple[Any, int]:
    place = ReassignablePartition(partition_index=partition, replicas=replicas)
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=TOPIC, partitions=[place])]), 1


def produce(batch: bytes, topic: str = TOPIC, partition: int = 1) -> tuple[Any, int]:
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])]
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data), 10


def sequenced(sequence: int, epoch: int = 0) -> bytes:
    return batch_of(Record(b"v", b"k", (), NOW_MS), producer_id=9_000_000, producer_epoch=epoch, base_sequence=sequence)


def leader_epoch(epoch: int, current: int = -1) -> tuple[Any, int]:
    wanted = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[wanted])]), 4


def feature(name: str, level: int, kind: int = 1) -> tuple[Any, int]:
    wanted = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    return UpdateFeaturesRequest(feature_updates=[wanted], validate_only=True), 1


def elect(kind: int, topic: str, partition: int) -> tuple[Any, int]:
    return ElectLeadersRequest(
        election_type=kind, topic_partitions=[TopicPartitions(topic=topic, partitions=[partition])]
    ), 2


def delete(*topics: DeleteTopicState) -> tuple[Any, int]:
    return DeleteTopicsRequest(topics=list(topics), timeout_ms=10_000), 6


def producers(topic: str, partition: int) -> tuple[Any, int]:
    return DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[partition])]), 0


def new_producer(transactional_id: str | None, producer_id: int = -1) -> tuple[Any, int]:
    return InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=1, producer_id=producer_id
    ), 4


def named(name: str) -> tuple[Any, int]:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False), 12


QUESTIONS: dict[str, tuple[Any, int]] = {
    "create, valid": create(new_topic("fine", 3)),
    "create, defaults of the cluster": create(new_topic("fine", -1, -1)),
    "create, no partitions": create(new_topic("fine", 0)),
    "create, minus two partitions": create(new_topic("fine", -2)),
    "create, no replicas": create(new_topic("fine", 1, 0)),
    "create, minus two replicas": create(new_topic("fine", 1, -2)),
    "create, two replicas": create(new_topic("fine", 1, 2)),
    "create, twice in one request": create(new_topic("fine"), new_topic("fine")),
    "create, one good and one bad": create(new_topic("fine"), new_topic("not fine")),
    "create, exists": create(new_topic(TOPIC)),
    "create, internal name": create(new_topic("__cluster_metadata")),
    "create, assigned by hand": create(new_topic("fine", -1, -1, assignments=assigned([1], [1]))),
    "create, assigned with a count": create(new_topic("fine", 2, -1, assignments=assigned([1], [1]))),
    "create, assigned with replicas": create(new_topic("fine", -1, 1, assignments=assigned([1]))),
    "create, assigned with a gap": create(new_topic("fine", -1, -1, assignments=assigned([1], first=1))),
    "create, assigned to nobody": create(new_topic("fine", -1, -1, assignments=assigned([]))),
    "create, assigned to an unknown broker": create(new_topic("fine", -1, -1, assignments=assigned([55]))),
    "create, assigned to one broker twice": create(new_topic("fine", -1, -1, assignments=assigned([1, 1]))),
    "create, unknown config": create(new_topic("fine", configs=config("no.such", "1"))),
    "create, null config": create(new_topic("fine", configs=config("retention.ms", None))),
    "create, config out of bounds": create(new_topic("fine", configs=config("segment.bytes", "1"))),
    "create, config that is no number": create(new_topic("fine", configs=config("retention.ms", "soon"))),
    "create, config of a list": create(new_topic("fine", configs=config("cleanup.policy", "compact,delete"))),
    "create, config of a wrong list": create(new_topic("fine", configs=config("cleanup.policy", "compress"))),
    "grow, to the same": grow(2),
    "grow, to fewer": grow(1),
    "grow, to more": grow(5),
    "grow, to minus one": grow(-1),
    "grow, unknown topic": grow(5, "nobody"),
    "grow, assigned": grow(3, assignments=[[1]]),
    "grow, assigned too few": grow(5, assignments=[[1]]),
    "grow, assigned to an unknown broker": grow(3, assignments=[[55]]),
    "delete, unknown name": delete(DeleteTopicState(name="nobody", topic_id=ZERO_UUID)),
    "delete, unknown id": delete(DeleteTopicState(topic_id=NOBODY)),
    "delete, neither name nor id": delete(DeleteTopicState(topic_id=ZERO_UUID)),
    **{f"offsets, {stamp}": offsets(stamp) for stamp in (-1, -2, -3, -4, -5, -6, -7, 0)},
    "offsets, in the middle": offsets(NOW_MS + 4),
    "offsets, of the future": offsets(NOW_MS + 99_999),
    "offsets, highest timestamp asked too early": offsets(-3, version=6),
    "offsets, earliest local asked too early": offsets(-4, version=7),
    "offsets, unknown partition": offsets(-1, partition=7),
    "offsets, older epoch": offsets(-1, epoch=-1),
    "offsets, epoch of the future": offsets(-1, epoch=99),
    "offsets of an empty partition by time": offsets(NOW_MS, partition=1),
    "offsets of an empty partition, highest timestamp": offsets(-3, partition=1),
    "fetch, from the start": fetch(0),
    "fetch, at the end": fetch(10),
    "fetch, beyond the end": fetch(11),
    "fetch, before the start": fetch(-1),
    "fetch, unknown partition": fetch(0, partition=9),
    "fetch, unknown topic": fetch(0, topic="nobody"),
    "fetch, epoch of the future": fetch(0, epoch=99),
    "config, set": set_config(SET, "retention.ms", "5"),
    "config, set to null": set_config(SET, "retention.ms", None),
    "config, delete": set_config(DELETE, "retention.ms", None),
    "config, append to a list": set_config(APPEND, "cleanup.policy", "compact"),
    "config, append to a number": set_config(APPEND, "retention.ms", "5"),
    "config, subtract from a list": set_config(SUBTRACT, "cleanup.policy", "delete"),
    "config, unknown name": set_config(SET, "no.such", "5"),
    "config, not a number": set_config(SET, "retention.ms", "soon"),
    "config, unknown topic": set_config(SET, "retention.ms", "5", "nobody"),
    "config, unknown broker": set_config(SET, "log.retention.ms", "5", "77", BROKER_RESOURCE),
    "config, not a broker's number": set_config(SET, "log.retention.ms", "5", "seven", BROKER_RESOURCE),
    "config, a read-only one": set_config(SET, "node.id", "5", "1", BROKER_RESOURCE),
    "config, of all brokers": set_config(SET, "log.retention.ms", "5", "", BROKER_RESOURCE),
    "config, unknown kind of resource": set_config(SET, "retention.ms", "5", "x", 99),
    "configs replaced": replace_configs("retention.ms", "5"),
    "configs replaced by an unknown one": replace_configs("no.such", "5"),
    "configs replaced by null": replace_configs("retention.ms", None),
    "configs of an unknown topic": describe(TOPIC_RESOURCE, "nobody"),
    "configs of an illegal topic": describe(TOPIC_RESOURCE, "a/b"),
    "configs of a broker by word": describe(BROKER_RESOURCE, "seven"),
    "configs of another broker": describe(BROKER_RESOURCE, "77"),
    "configs of an unknown kind": describe(99, "x"),
    "configs, some": describe(TOPIC_RESOURCE, TOPIC, ["retention.ms", "no.such"]),
    "configs, none": describe(TOPIC_RESOURCE, TOPIC, []),
    "delete records, beyond the end": delete_records(11),
    "delete records, minus five": delete_records(-5),
    "delete records, none": delete_records(0),
    "delete records, unknown partition": delete_records(0, partition=9),
    "elect the preferred": elect(0, TOPIC, 0),
    "elect the preferred of an unknown partition": elect(0, TOPIC, 9),
    "elect the preferred of an unknown topic": elect(0, "nobody", 0),
    "elect uncleanly": elect(1, TOPIC, 0),
    "reassign to an unknown broker": reassign([55]),
    "reassign to nobody": reassign([]),
    "reassign to one broker twice": reassign([1, 1]),
    "reassign an unknown partition": reassign([1], partition=9),
    "cancel a reassignment that is not": reassign(None),
    "produce to an unknown topic": produce(batch_of(Record(b"v")), "nobody"),
    "produce to an unknown partition": produce(batch_of(Record(b"v", None, (), NOW_MS)), partition=9),
    "produce from the future": produce(batch_of(Record(b"v", None, (), NOW_MS + 90_000_000))),
    "produce in the middle of a sequence": produce(sequenced(5)),
    "produce with a producer's id but no sequence": produce(sequenced(-1)),
    "producers of an unknown partition": producers(TOPIC, 9),
    "producers of an unknown topic": producers("nobody", 0),
    "end of epoch 0": leader_epoch(0),
    "end of an epoch of the future": leader_epoch(99),
    "end of an epoch, asked with one of the future": leader_epoch(0, current=99),
    "feature, unknown": feature("no.such", 1),
    "feature, too high": feature("metadata.version", 99),
    "feature, unsafe word": feature("metadata.version", 25, 9),
    "metadata of an unknown topic": named("nobody"),
    "metadata of an illegal topic": named("a/b"),
    "metadata of an unknown id": (MetadataRequest(topics=[MetadataRequestTopic(topic_id=NOBODY, name=None)]), 12),
    "a producer's id with a bad pair": new_producer(None, producer_id=5),
    "a producer's id, empty transaction": new_producer(""),
}  # fmt: skip

DIFFERENT_ON_PURPOSE = {
    "config, unknown operation": (set_config(9, "retention.ms", "5"), "INVALID_REQUEST", "UNKNOWN_SERVER_ERROR"),
    "produce with a negative epoch": (
        produce(sequenced(0, epoch=-1), OTHER_TOPIC, 0),
        "INVALID_RECORD",
        "NONE",
    ),
}


def prepared(port: int) -> RawClient:
    """A connection to a broker that has the topic and its ten records."""
    client = RawClient("127.0.0.1", port, timeout_s=60)
    for topic, partitions in ((OTHER_TOPIC, 1), (TOPIC, 2)):
        client.call(CreateTopicsRequest(topics=[new_topic(topic, partitions)], timeout_ms=10_000), 7)
        for partition in range(partitions):
            asked, version = offsets(-1, partition, topic=topic)
            wait_until(
                lambda asked=asked, version=version: client.call(asked, version).topics[0].partitions[0].offset == 0,
                "the topic",
            )
    records = [Record(b"value-%d" % number, b"key", (), NOW_MS + number) for number in range(10)]
    answer = client.call(*produce(batch_of(*records), partition=0))
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    return client


@pytest.fixture(scope="module")
def both(apache_kafka: ApacheKafka, millstream: MillstreamProcess) -> Iterator[dict[str, RawClient]]:
    clients = {broker.name: prepared(broker.port) for broker in (apache_kafka, millstream)}
    yield clients
    for client in clients.values():
        client.close()


def essence(value: Any) -> Any:
    """An answer without what is volatile, its error codes by name, its lists in an order of their own."""
    if isinstance(value, msgspec.Struct):
        return {
            name: ErrorCode(getattr(value, name)).name if name == "error_code" else essence(getattr(value, name))
            for name in value.__struct_fields__
            if name not in VOLATILE
        }
    if isinstance(value, list):
        return sorted((essence(each) for each in value), key=repr)
    return str(value) if isinstance(value, Uuid) else value


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_both_brokers_answer_alike(both: dict[str, RawClient], question: tuple[Any, int]) -> None:
    request, version = question
    answers = {}
    for name, client in both.items():
        try:
            answers[name] = essence(client.call(request, version))
        except ConnectionError:
            answers[name] = "cut off"
            both[name] = RawClient(*client.address, timeout_s=60)
            client.close()
    assert answers["millstream"] == answers["apache-kafka"]


@pytest.mark.parametrize(("question", "ours", "theirs"), DIFFERENT_ON_PURPOSE.values(), ids=DIFFERENT_ON_PURPOSE.keys())
def test_where_millstream_knows_better(
    both: dict[str, RawClient], question: tuple[Any, int], ours: str, theirs: str
) -> None:
    request, version = question
    assert f"'error_code': '{ours}'" in str(essence(both["millstream"].call(request, version)))
    assert f"'error_code': '{theirs}'" in str(essence(both["apache-kafka"].call(request, version)))


def test_both_brokers_know_the_same_configs_of_a_topic(both: dict[str, RawClient]) -> None:
    described = {
        name: {entry.name: (entry.value, entry.config_type, entry.read_only, entry.is_sensitive) for entry in entries}
        for name, entries in (
            (name, client.call(*describe(TOPIC_RESOURCE, TOPIC)).results[0].configs) for name, client in both.items()
        )
    }
    assert described["millstream"] == described["apache-kafka"]
