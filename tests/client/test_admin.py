"""Admin calls, against Apache Kafka and Millstream alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.client.admin import raise_first
from millstream.client.admin.cluster import describe_cluster, describe_features, describe_log_dirs, describe_quorum
from millstream.client.admin.configs import (
    Change,
    ConfigSource,
    Operation,
    Resource,
    ResourceKind,
    alter_configs,
    describe_configs,
)
from millstream.client.admin.partitions import alter_reassignments, elect_leaders, list_reassignments
from millstream.client.admin.topics import (
    NewTopic,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_topics,
    list_topics,
)
from millstream.client.errors import NotSupported, Refusal
from millstream.client.produce import produce
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_cluster import DescribeClusterRequest
from millstream.records.building import encode_batch
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from millstream.client.admin.topics import DescribedTopic
    from millstream.client.sync import SyncClient
    from tests.support.running import RunningBroker


def names(client: SyncClient) -> list[str]:
    return [topic.name for topic in client.run(list_topics)]


# A change is answered by the controller; what a broker shows follows a moment later.
def appears(client: SyncClient, name: str) -> None:
    wait_until(lambda: name in names(client), f"{name} to be listed")


def vanishes(client: SyncClient, name: str) -> None:
    wait_until(lambda: name not in names(client), f"{name} to be gone")


def test_a_topic_is_created_described_grown_and_deleted(client: SyncClient, fresh_name: str) -> None:
    wanted = NewTopic(fresh_name, partitions=2, replicas=1, configs={"retention.ms": "12345"})
    created = raise_first(client.run(create_topics, [wanted]))[fresh_name]
    assert (created.partitions, created.replicas) == (2, 1)
    appears(client, fresh_name)

    raise_first(client.run(create_partitions, {fresh_name: 3}))

    def grown() -> DescribedTopic | None:
        described = raise_first(client.run(describe_topics, [fresh_name]))[fresh_name]
        return described if len(described.partitions) == 3 else None

    described = wait_until(grown, "the third partition")
    assert described is not None
    assert described.id == created.id
    assert [partition.index for partition in described.partitions] == [0, 1, 2]
    assert all(partition.leader_id in partition.isr for partition in described.partitions)

    raise_first(client.run(delete_topics, [fresh_name]))
    vanishes(client, fresh_name)


def test_one_bad_topic_does_not_fail_its_neighbour(client: SyncClient, fresh_name: str) -> None:
    outcomes = client.run(create_topics, [NewTopic(fresh_name, 1, 1), NewTopic("not a name", 1, 1)])
    assert not isinstance(outcomes[fresh_name], Refusal)
    refusal = outcomes["not a name"]
    assert isinstance(refusal, Refusal)
    assert refusal.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "not a name" in str(refusal)


def test_the_default_number_of_partitions_is_the_brokers(client: SyncClient, fresh_name: str) -> None:
    created = raise_first(client.run(create_topics, [NewTopic(fresh_name)]))[fresh_name]
    assert (created.partitions, created.replicas) == (1, 1)


def test_validate_only_creates_nothing(client: SyncClient, fresh_name: str) -> None:
    raise_first(client.run(create_topics, [NewTopic(fresh_name, 1, 1)], validate_only=True))
    assert fresh_name not in names(client)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic("many-replicas", 1, 9), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("no-partitions", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("bad-config", 1, 1, {"no.such.setting": "1"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("bad-value", 1, 1, {"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_topic_that_cannot_be_is_refused_with_a_reason(client: SyncClient, topic: NewTopic, code: ErrorCode) -> None:
    outcome = client.run(create_topics, [topic])[topic.name]
    assert isinstance(outcome, Refusal)
    assert outcome.code is code
    assert outcome.broker_message


def test_what_does_not_exist_is_named(client: SyncClient) -> None:
    for outcomes in (client.run(describe_topics, ["nowhere"]), client.run(delete_topics, ["nowhere"])):
        refusal = outcomes["nowhere"]
        assert isinstance(refusal, Refusal)
        assert refusal.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "'nowhere'" in str(refusal)


def test_a_setting_is_set_appended_to_and_taken_back(client: SyncClient, fresh_name: str) -> None:
    raise_first(client.run(create_topics, [NewTopic(fresh_name, 1, 1)]))
    appears(client, fresh_name)
    topic = Resource(ResourceKind.TOPIC, fresh_name)

    def becomes(value: str, source: ConfigSource) -> None:
        def shown() -> bool:
            found = raise_first(client.run(describe_configs, [topic], names=["cleanup.policy"]))[topic]
            return (found[0].value, found[0].source) == (value, source)

        wait_until(shown, f"cleanup.policy to be {value} from {source.name}")

    becomes("delete", ConfigSource.DEFAULT_CONFIG)
    raise_first(client.run(alter_configs, {topic: [Change("cleanup.policy", "compact")]}))
    becomes("compact", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    raise_first(client.run(alter_configs, {topic: [Change("cleanup.policy", "delete", Operation.APPEND)]}))
    becomes("compact,delete", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    raise_first(client.run(alter_configs, {topic: [Change("cleanup.policy", None, Operation.DELETE)]}))
    becomes("delete", ConfigSource.DEFAULT_CONFIG)


def test_the_cluster_describes_itself(client: SyncClient, cluster: RunningBroker) -> None:
    found = client.run(describe_cluster)
    assert [str(broker.address) for broker in found.brokers] == [cluster.bootstrap_servers]
    assert found.controller_id == found.brokers[0].id
    quorum = client.run(describe_quorum)
    assert [voter.replica_id for voter in quorum.state.current_voters] == [quorum.state.leader_id]
    features = {feature.name: feature for feature in client.run(describe_features)}
    assert features["metadata.version"].finalized is not None


def test_disks_tell_the_size_of_partitions(client: SyncClient, fresh_name: str) -> None:
    raise_first(client.run(create_topics, [NewTopic(fresh_name, 1, 1)]))
    batch = encode_batch([(None, b"x" * 100, (), 1_700_000_000_000)])
    client.run(produce, {(fresh_name, 0): batch})
    node_id = client.run(describe_cluster).brokers[0].id
    directories = raise_first(client.run(describe_log_dirs, [node_id]))[node_id]
    sizes = {
        (topic.name, partition.partition_index): partition.partition_size
        for directory in directories
        for topic in directory.topics
        for partition in topic.partitions
    }
    assert sizes[fresh_name, 0] == len(batch)


def test_records_before_an_offset_are_deleted(client: SyncClient, fresh_name: str) -> None:
    raise_first(client.run(create_topics, [NewTopic(fresh_name, 1, 1)]))
    client.run(produce, {(fresh_name, 0): encode_batch([(None, b"x", (), 1_700_000_000_000)] * 5)})
    assert raise_first(client.run(delete_records, {(fresh_name, 0): 3})) == {(fresh_name, 0): 3}
    refusal = client.run(delete_records, {(fresh_name, 0): 99})[fresh_name, 0]
    assert isinstance(refusal, Refusal)
    assert refusal.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert "partition 0" in str(refusal)


def test_a_lone_broker_has_nothing_to_move_or_elect(client: SyncClient, fresh_name: str) -> None:
    raise_first(client.run(create_topics, [NewTopic(fresh_name, 1, 1)]))
    outcome = client.run(elect_leaders, [(fresh_name, 0)])[fresh_name, 0]
    assert isinstance(outcome, Refusal)
    assert outcome.code is ErrorCode.ELECTION_NOT_NEEDED
    assert client.run(list_reassignments) == {}
    node_id = client.run(describe_cluster).brokers[0].id
    raise_first(client.run(alter_reassignments, {(fresh_name, 0): [node_id]}))
    refusal = client.run(alter_reassignments, {(fresh_name, 0): [node_id + 77]})[fresh_name, 0]
    assert isinstance(refusal, Refusal)
    assert refusal.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_version_that_the_broker_lacks_is_refused_before_it_is_sent(client: SyncClient) -> None:
    async def ask(asked: object) -> None:
        await client.client.call(DescribeClusterRequest(include_cluster_authorized_operations=False), at_least=99)

    with pytest.raises(NotSupported, match="DescribeCluster"):
        client.run(ask)
