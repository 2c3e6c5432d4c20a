"""Conversations about topics, configs, features, elections and moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.broker.handlers.conversations import configs_of

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
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from millstream.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from millstream.protocol.messages.list_config_resources import ListConfigResourcesRequest
from millstream.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.messages.unregister_broker import UnregisterBrokerRequest
from millstream.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from millstream.protocol.uuid import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.broker.handlers.conversations import Talk

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
UPGRADE, SAFE_DOWNGRADE = 1, 2


def _topic(name, partitions=1, replicas=1, assigned=(), configs=()):
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in assigned
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )


def create_topics(talk: Talk) -> None:
    def create(label, *topics, version=7, validate_only=False):
        answer = talk.ask(label, CreateTopicsRequest(topics=list(topics), validate_only=validate_only), version)
        for topic in talk.heard[label]["topics"]:
            # With eligible leader replicas, which Apache Kafka turns on, this one default stands elsewhere.
            topic["configs"] = [entry for entry in topic["configs"] if entry["name"] != "min.insync.replicas"]
        return answer

    n = talk.name
    create("new", _topic(n("a")))
    for version in (2, 4, 5, 6):
        create(f"exists, version {version}", _topic(n("a")), version=version)
    create("defaults", _topic(n("b"), -1, -1), version=2)
    create("validated", _topic(n("v"), 3, -1), validate_only=True)
    create("twice", _topic(n("d")), _topic(n("d")), _topic(n("e")))
    for name in ("", ".", "..", "x" * 250, "a b", "ü", "a/b", "__cluster_metadata"):
        create(f"named {name[:20]!r}", _topic(name))
    create("with a dot", _topic(n("q.x")))
    create("collides", _topic(n("q_x")))
    create("two that collide", _topic(n("r.x")), _topic(n("r_x")))
    for partitions, replicas in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 2)):
        create(f"{partitions} partitions, {replicas} replicas", _topic(n("size"), partitions, replicas))
    create("assigned", _topic(n("m"), -1, -1, [(0, [1]), (1, [1])]))
    create("assigned and counted", _topic(n("n"), 2, -1, [(0, [1]), (1, [1])]))
    create("assigned and replicated", _topic(n("n"), -1, 1, [(0, [1])]))
    for label, assigned in (
        ("twice the same", [(0, [1, 1])]),
        ("a stranger", [(0, [7])]),
        ("a gap", [(1, [1])]),
        ("nobody", [(0, [])]),
        ("a partition twice", [(0, [1]), (0, [1])]),
    ):
        create(f"assigned to {label}", _topic(n("n"), -1, -1, assigned))
    for label, configs in (
        ("known and unknown", [("retention.ms", "1000"), ("foo", "bar")]),
        ("no number", [("retention.ms", "x")]),
        ("null", [("retention.ms", None)]),
        ("named twice", [("cleanup.policy", "compact,delete"), ("cleanup.policy", "delete")]),
        ("not of the list", [("cleanup.policy", "foo")]),
        ("too small", [("retention.ms", "-2")]),
        ("tiered", [("remote.storage.enable", "true")]),
        ("empty", [("compression.type", "")]),
        ("conflicting", [("min.compaction.lag.ms", "100"), ("max.compaction.lag.ms", "50")]),
        ("no replicas", [("follower.replication.throttled.replicas", "x")]),
        ("of old", [("message.format.version", "3.0")]),
        ("with spaces", [("retention.ms", " 1000 ")]),
        ("more in sync than there are", [("min.insync.replicas", "3")]),
    ):
        create(f"config {label}", _topic(n(f"c-{label.replace(' ', '-')}"), configs=configs))
    create("too many", _topic(n("big"), 10_001), _topic(n("small")))
    create("nothing")


def delete_topics(talk: Talk) -> None:
    ids = {short: talk.topic(short) for short in ("d1", "d2", "d3", "d4", "d5")}
    n = talk.name

    def by_name(label, version, *shorts):
        request = DeleteTopicsRequest(topic_names=[n(short) for short in shorts], timeout_ms=5000)
        talk.ask(label, request, version)

    def entry(short=None, topic_id=ZERO_UUID):
        return DeleteTopicState(name=None if short is None else n(short), topic_id=topic_id)

    def delete(label, *entries):
        talk.ask(label, DeleteTopicsRequest(topics=list(entries), timeout_ms=5000), 6)

    by_name("twice and unknown", 5, "d1", "d1", "nope")
    by_name("version 1", 1, "d1", "nope")
    delete("twice", entry("d2"), entry("d2"))
    delete("both ways", entry("d2", ids["d2"]))
    delete("no way", entry())
    delete("no way twice", entry(), entry())
    delete("name and id of one", entry("d2"), entry(topic_id=ids["d2"]))
    delete("unknown id, id, name", entry(topic_id=Uuid(b"x" * 16)), entry(topic_id=ids["d4"]), entry("d5"))
    delete("the cluster's log", DeleteTopicState(name="__cluster_metadata", topic_id=ZERO_UUID))
    delete("nothing")


def create_partitions(talk: Talk) -> None:
    talk.topic("p", 2)

    def grow(label, *topics, version=3, validate_only=False):
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(
                    name=talk.name(short),
                    count=count,
                    assignments=None
                    if assigned is None
                    else [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assigned],
                )
                for short, count, assigned in topics
            ],
            timeout_ms=5000,
            validate_only=validate_only,
        )
        talk.ask(label, request, version)

    for count in (2, 1, 0, -1):
        grow(f"to {count}", ("p", count, None))
    grow("twice", ("p", 4, None), ("p", 5, None))
    grow("unknown", ("nope", 3, None), ("p", 3, None), validate_only=True)
    for label, count, assigned in (
        ("too few", 4, [[1]]),
        ("twice", 3, [[1, 1]]),
        ("a stranger", 3, [[9]]),
        ("nobody", 3, [[]]),
        ("none at all", 3, []),
    ):
        grow(f"assigned: {label}", ("p", count, assigned))
    for version in range(4):
        grow(f"version {version}", ("p", 3 + version, [[1]]), version=version)


def alter_configs_incrementally(talk: Talk) -> None:
    talk.topic("t")
    n = talk.name

    def alter(label, kind, name, *changes, version=1, validate_only=False, times=1):
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
                for key, operation, value in changes
            ],
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[resource] * times, validate_only=validate_only
        )
        talk.ask(label, request, version)

    alter("set", TOPIC, n("t"), ("retention.ms", SET, "5000"), version=0)
    alter("no number", TOPIC, n("t"), ("retention.ms", SET, "x"))
    alter("null", TOPIC, n("t"), ("retention.ms", SET, None))
    alter("unknown", TOPIC, n("t"), ("foo", SET, "1"))
    alter("delete unknown", TOPIC, n("t"), ("foo", DELETE, None))
    alter("unknown topic", TOPIC, n("nope"), ("retention.ms", SET, "1"))
    alter("no topic", TOPIC, "", ("retention.ms", SET, "1"))
    alter("bad topic", TOPIC, "a b", ("retention.ms", SET, "1"))
    alter("append to a number", TOPIC, n("t"), ("retention.ms", APPEND, "1"))
    alter("append to a list", TOPIC, n("t"), ("cleanup.policy", APPEND, "compact"))
    alter("subtract", TOPIC, n("t"), ("cleanup.policy", SUBTRACT, "delete"), ("retention.bytes", SET, "9"))
    alter("a config twice", TOPIC, n("t"), ("retention.ms", SET, "1"), ("retention.ms", DELETE, None))
    alter("a resource twice", TOPIC, n("t"), ("retention.ms", SET, "7"), times=2)
    alter("nothing", TOPIC, n("t"))
    alter("too small", TOPIC, n("t"), ("segment.bytes", SET, "1"))
    alter("validated", TOPIC, n("t"), ("retention.ms", SET, "9"), validate_only=True)
    alter("another broker", BROKER, "2", ("log.retention.ms", SET, "8888"))
    alter("no broker", BROKER, "x", ("log.retention.ms", SET, "8888"))
    alter("read-only", BROKER, "1", ("num.partitions", SET, "3"))
    alter("read-only for all", BROKER, "", ("num.partitions", SET, "3"))
    alter("a secret for all listeners", BROKER, "1", ("ssl.keystore.password", SET, "hunter2"))
    alter("no number on a broker", BROKER, "1", ("log.retention.ms", SET, "abc"))
    alter("unknown of a broker", BROKER, "1", ("no.such.setting", SET, "3"))
    alter("unknown of a broker, gone", BROKER, "1", ("no.such.setting", DELETE, None))
    alter("no operation", TOPIC, n("t"), ("retention.ms", 9, "1"))
    alter("listeners of all", BROKER, "", ("listeners", SET, "PLAINTEXT://:1"))
    alter("no logger", LOGGER, "1", ("nope.nope", SET, "INFO"))
    alter("too often", CLIENT_METRICS, n("m"), ("interval.ms", SET, "5"))
    alter("client metrics", CLIENT_METRICS, n("m"), ("interval.ms", SET, "5000"))
    alter("unknown client metrics", CLIENT_METRICS, n("m"), ("foo", SET, "5000"))
    alter("no client metrics", CLIENT_METRICS, "", ("interval.ms", SET, "5000"))
    alter("group", GROUP, n("g"), ("consumer.session.timeout.ms", SET, "50000"))
    alter("group out of bounds", GROUP, n("g"), ("consumer.session.timeout.ms", SET, "1"))
    alter("unknown of a group", GROUP, n("g"), ("foo", SET, "1"))
    alter("no group", GROUP, "", ("consumer.session.timeout.ms", SET, "50000"))
    alter("no kind", 99, "g", ("foo", SET, "1"))
    _describe(talk, "outcome", TOPIC, n("t"), "retention.ms", "cleanup.policy", "retention.bytes", value="compact")


def alter_configs_as_a_whole(talk: Talk) -> None:
    talk.topic("t")

    def alter(label, kind, name, *configs, version=2):
        resource = alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in configs],
        )
        talk.ask(label, alter_configs.AlterConfigsRequest(resources=[resource], validate_only=False), version)

    n = talk.name
    alter("known and unknown", TOPIC, n("t"), ("retention.ms", "99"), ("foo", "1"))
    alter("set", TOPIC, n("t"), ("retention.bytes", "98"), ("retention.ms", "99"), version=0)
    alter("set again", TOPIC, n("t"), ("retention.ms", "99"), version=1)
    alter("null", TOPIC, n("t"), ("retention.ms", None))
    _describe(talk, "outcome", TOPIC, n("t"), "retention.ms", "retention.bytes", value="99")
    alter("nothing", TOPIC, n("t"))
    alter("unknown topic", TOPIC, n("nope"), ("retention.ms", "1"))
    alter("read-only", BROKER, "1", ("num.partitions", "5"))
    alter("too often", CLIENT_METRICS, n("m"), ("interval.ms", "5"))
    alter("loggers", LOGGER, "1", ("root", "INFO"))
    alter("no kind", 99, "1", ("root", "INFO"))


def _describe(talk: Talk, label: str, kind: int, name: str, *names: str, value: str) -> None:
    """Remember some configs once they show a value: a broker of Apache Kafka's follows its controller a bit later."""
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)]
    )

    def settled():
        found = configs_of(talk.client.call(request, 4), *names)
        return found if any(entry[1] == value for entry in found) else None

    talk.heard[label] = [list(entry) for entry in talk.until(settled, f"{name} to show {value}")]


def describe_configs(talk: Talk) -> None:
    talk.topic("t")

    def describe(label, kind, name, keys=None, version=4, *, synonyms=True):
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        talk.ask(label, DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms), version)

    for version in range(1, 5):
        describe(f"topic, version {version}", TOPIC, talk.name("t"), version=version, synonyms=False)
        for entry in talk.heard[f"topic, version {version}"]["results"][0]["configs"]:
            # With eligible leader replicas, which Apache Kafka turns on, this one default stands elsewhere.
            if entry["name"] == "min.insync.replicas":
                del entry["config_source"]
    describe("with synonyms", TOPIC, talk.name("t"), ["cleanup.policy", "segment.bytes", "max.message.bytes", "nope"])
    describe("a group", GROUP, "nope", ["share.auto.offset.reset", "consumer.session.timeout.ms", "nope"])
    describe("some of a broker", BROKER, "1", ["num.partitions", "log.retention.ms", "ssl.key.password", "nope"])
    for kind, name in (
        (BROKER, "2"),
        (BROKER, "x"),
        (TOPIC, "nope"),
        (TOPIC, "a b"),
        (TOPIC, ""),
        (LOGGER, ""),
        (LOGGER, "2"),
        (CLIENT_METRICS, "nope"),
        (CLIENT_METRICS, ""),
        (GROUP, "nope"),
        (GROUP, ""),
        (0, "z"),
        (99, "z"),
    ):
        describe(f"{kind} {name!r}", kind, name, synonyms=False)


def list_config_resources(talk: Talk) -> None:
    talk.topic("t")
    talk.ask("an unknown kind", ListConfigResourcesRequest(resource_types=[99]), 1)
    answer = talk.client.call(ListConfigResourcesRequest(resource_types=[TOPIC, BROKER]), 1)
    talk.heard["topic and broker"] = sorted(
        [entry.resource_type, entry.resource_name.replace(talk.prefix, "")]
        for entry in answer.config_resources
        if entry.resource_type == BROKER or entry.resource_name.startswith(talk.prefix)
    )


def update_features(talk: Talk) -> None:
    for version in range(3):
        for feature, level, how in (
            ("nope", 1, UPGRADE),
            ("metadata.version", 31, UPGRADE),
            ("metadata.version", 29, UPGRADE),
            ("metadata.version", 6, SAFE_DOWNGRADE),
            ("metadata.version", 22, SAFE_DOWNGRADE),
            ("metadata.version", 30, UPGRADE),
            ("eligible.leader.replicas.version", -1, SAFE_DOWNGRADE),
            ("eligible.leader.replicas.version", 2, UPGRADE),
        ):
            update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=how)
            request = UpdateFeaturesRequest(feature_updates=[update], validate_only=True)
            talk.ask(f"{feature} {level} by {how}, version {version}", request, version)
    # Version 0 has no trial run: what goes down here goes up again.
    for allowed in (True, False):
        for feature, level in (("group.version", 0), ("group.version", 1), ("metadata.version", 22), ("nope", 0)):
            update = FeatureUpdateKey(feature=feature, max_version_level=level, allow_downgrade=allowed)
            label = f"{feature} {level}, downgrade {'allowed' if allowed else 'not allowed'}"
            talk.ask(label, UpdateFeaturesRequest(feature_updates=[update]), 0)
    both = [
        FeatureUpdateKey(feature=name, max_version_level=level) for name, level in (("metadata.version", 30), ("a", 1))
    ]
    talk.ask("one good, one bad", UpdateFeaturesRequest(feature_updates=both), 1)
    talk.ask("none", UpdateFeaturesRequest(feature_updates=[]), 2)


def elect_leaders(talk: Talk) -> None:
    talk.topic("t", 2)

    def elect(label, topics, kind=0, version=2):
        asked = [TopicPartitions(topic=talk.name(short), partitions=list(numbers)) for short, numbers in topics]
        talk.ask(label, ElectLeadersRequest(election_type=kind, topic_partitions=asked), version)

    for version in range(3):
        elect(f"preferred, version {version}", [("t", [0, 1, 9]), ("nope", [0])], version=version)
    elect("unclean", [("t", [0])], 1)
    elect("unknown kind", [("t", [0])], 7)
    elect("the same twice", [("t", [0]), ("t", [0])])
    elect("nothing", [])
    elect("no partition", [("t", [])])


def move_partitions(talk: Talk) -> None:
    talk.topic("t", 4)

    def move(label, *moves, version=1, resize=True, short="t"):
        topic = ReassignableTopic(
            name=talk.name(short),
            partitions=[ReassignablePartition(partition_index=index, replicas=replicas) for index, replicas in moves],
        )
        request = AlterPartitionReassignmentsRequest(topics=[topic], allow_replication_factor_change=resize)
        talk.ask(label, request, version)

    move("all kinds", (0, [1]), (1, None), (9, [1]), (2, [7]), (3, []))
    move("unknown", (0, [1]), short="nope")
    move("to one broker twice", (0, [1, 1]))
    move("the same twice", (0, [1]), (0, [1]))
    move("version 0", (0, [1]), version=0)
    move("without a resize", (0, [1, 9]), resize=False)

    def listing(label, topics):
        asked = [ListPartitionReassignmentsTopics(name=talk.name(s), partition_indexes=i) for s, i in topics]
        talk.ask(label, ListPartitionReassignmentsRequest(topics=asked), 0)

    listing("listed", [("t", [0, 9]), ("nope", [0])])
    listing("none listed", [])


def no_time(talk: Talk) -> None:
    """A timeout of 0 or less: some requests have timed out before anything is looked at, others have no timeout."""
    topic_id = talk.topic("t", 2)
    n = talk.name
    created = [_topic(n("t")), _topic(n("a b")), _topic(n("d")), _topic(n("d")), _topic("__cluster_metadata")]
    by_name, by_id = ((n("t"), ZERO_UUID), (None, topic_id))
    grown = [CreatePartitionsTopic(name=n(short), count=3, assignments=None) for short in ("t", "nope", "d", "d")]
    elected = [TopicPartitions(topic=n("t"), partitions=[0, 9]), TopicPartitions(topic=n("nope"), partitions=[0])]
    moved = [
        ReassignableTopic(
            name=n(short), partitions=[ReassignablePartition(partition_index=index, replicas=[1]) for index in (0, 9)]
        )
        for short in ("t", "nope")
    ]
    feature = FeatureUpdateKey(feature="metadata.version", max_version_level=30)

    def create(*topics, validate_only=False):
        return CreateTopicsRequest(topics=list(topics), validate_only=validate_only)

    def delete(*topics):
        return DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name, topic_id=found) for name, found in topics], timeout_ms=0
        )

    def delete_by_name(*shorts):
        return DeleteTopicsRequest(topic_names=[n(short) for short in shorts], timeout_ms=0)

    def grow(*topics):
        return CreatePartitionsRequest(topics=list(topics), timeout_ms=0, validate_only=False)

    for label, request, version in (
        ("create", create(*created), 7),
        ("create, version 2", create(*created), 2),
        ("create, validated", create(_topic(n("new")), validate_only=True), 7),
        ("create twice", create(*created[2:4]), 7),
        ("create the cluster's log", create(created[4]), 7),
        ("create nothing", create(), 7),
        ("delete", delete(by_name, (n("nope"), ZERO_UUID), (None, ZERO_UUID)), 6),
        ("delete by id", delete(by_id), 6),
        ("delete both ways", delete((n("t"), topic_id)), 6),
        ("delete no way", delete((None, ZERO_UUID)), 6),
        ("delete nothing", delete(), 6),
        ("delete, version 5", delete_by_name("t", "nope", "d", "d"), 5),
        ("delete twice, version 1", delete_by_name("d", "d"), 1),
        ("grow", grow(*grown), 3),
        ("grow twice", grow(*grown[2:]), 3),
        ("grow nothing", grow(), 3),
        ("elect, version 0", ElectLeadersRequest(topic_partitions=elected), 0),
        ("elect, version 1", ElectLeadersRequest(topic_partitions=elected), 1),
        ("elect, unknown kind", ElectLeadersRequest(topic_partitions=elected, election_type=7), 2),
        ("elect everywhere", ElectLeadersRequest(topic_partitions=None), 2),
        ("elect nothing", ElectLeadersRequest(topic_partitions=[]), 2),
        ("move", AlterPartitionReassignmentsRequest(topics=moved), 1),
        ("move, version 0", AlterPartitionReassignmentsRequest(topics=moved), 0),
        ("move nothing", AlterPartitionReassignmentsRequest(topics=[]), 1),
        ("list moves", ListPartitionReassignmentsRequest(topics=None), 0),
        ("update a feature", UpdateFeaturesRequest(feature_updates=[feature], validate_only=True), 2),
    ):
        for timeout_ms in (0, -1, -(2**31)):
            request.timeout_ms = timeout_ms
            talk.ask(f"{label}, {timeout_ms} ms", request, version)
    names = [MetadataRequestTopic(name=n(short)) for short in ("t", "new")]
    found = talk.client.call(MetadataRequest(topics=names, allow_auto_topic_creation=False), 12).topics
    talk.heard["nothing happened"] = sorted(
        [each.name.replace(talk.prefix, ""), len(each.partitions)] for each in found
    )


def unregister_broker(talk: Talk) -> None:
    talk.ask("a stranger", UnregisterBrokerRequest(broker_id=99), 0)


ADMIN: tuple[Callable[[Talk], None], ...] = (
    create_topics,
    delete_topics,
    create_partitions,
    alter_configs_incrementally,
    alter_configs_as_a_whole,
    describe_configs,
    list_config_resources,
    update_features,
    elect_leaders,
    move_partitions,
    no_time,
    unregister_broker,
)
