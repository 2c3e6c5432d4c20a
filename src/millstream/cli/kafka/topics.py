"""`kafka-topics`: --list, --create, --describe, --alter, --delete."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from millstream.cli.connect import key_value, open_client
from millstream.cli.declare import UsageError
from millstream.cli.kafka.arguments import ToolParser, client_options_of
from millstream.client.admin import raise_first
from millstream.client.admin.configs import Resource, ResourceKind, describe_configs
from millstream.client.admin.partitions import list_reassignments
from millstream.client.admin.topics import (
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
    describe_topics,
    list_topics,
)
from millstream.client.errors import ClientError, Refusal
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from millstream.client.admin.configs import Config
    from millstream.client.admin.partitions import Reassignment
    from millstream.client.admin.topics import DescribedPartition
    from millstream.client.metadata import Topic
    from millstream.client.sync import SyncClient

ACTIONS = ("list", "create", "describe", "alter", "delete")
COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)


def run(words: Sequence[str]) -> int:
    parsed = _parser().read(words)
    chosen = [action for action in ACTIONS if getattr(parsed, action)]
    if len(chosen) != 1:
        raise UsageError("exactly one of --list, --create, --describe, --alter and --delete must be given")
    action = {"list": _list, "create": _create, "describe": _describe, "alter": _alter, "delete": _delete}[chosen[0]]
    with open_client(client_options_of(parsed)) as client:
        try:
            action(client, parsed)
        except ClientError as error:
            said = error.broker_message if isinstance(error, Refusal) and error.broker_message else str(error)
            sys.stderr.write(f"Error while executing topic command : {said}\n")
            return 1
    return 0


def _parser() -> ToolParser:
    parser = ToolParser("kafka-topics", "Create, list, describe, alter and delete topics.")
    parser.connection()
    for action in ACTIONS:
        parser.flag(f"--{action}", help=f"{action} topics")
    parser.add_argument("--topic", help="a name; for all but --create also a regular expression")
    parser.add_argument("--topic-id", help="describe the topic with this id")
    parser.add_argument("--partitions", type=int, help="number of partitions")
    parser.add_argument("--replication-factor", type=int, help="copies of each partition")
    parser.add_argument("--replica-assignment", help="brokers of each partition: 1:2,2:3")
    parser.multiple("--config", metavar="NAME=VALUE", help="a setting of the new topic")
    parser.flag("--if-not-exists", help="create only what is not there")
    parser.flag("--if-exists", help="alter, delete or describe only what is there")
    parser.flag("--exclude-internal", help="leave out Kafka's own topics")
    parser.flag("--topics-with-overrides", help="describe only topics with settings of their own")
    parser.flag("--under-replicated-partitions", help="describe only these")
    parser.flag("--unavailable-partitions", help="describe only partitions without a leader")
    parser.flag("--under-min-isr-partitions", help="describe only these")
    parser.flag("--at-min-isr-partitions", help="describe only these")
    return parser


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _matching(client: SyncClient, parsed: argparse.Namespace) -> list[Topic]:
    """The topics that --topic means, a list of regular expressions; a name that matches none is an error."""
    topics = client.run(list_topics)
    if parsed.exclude_internal:
        topics = [topic for topic in topics if not topic.internal]
    if parsed.topic_id is not None:
        found = [topic for topic in topics if str(topic.id) == parsed.topic_id]
        if not found and not parsed.if_exists:
            raise ClientError(f"TopicId '{parsed.topic_id}' does not exist as expected")
        return found
    if parsed.topic is None:
        return topics
    try:
        pattern = re.compile(parsed.topic.strip("\"'").replace(",", "|"))
    except re.error as error:
        raise UsageError(f"--topic {parsed.topic!r} is not a regular expression: {error}") from error
    found = [topic for topic in topics if pattern.fullmatch(topic.name)]
    if not found and not parsed.if_exists and not parsed.list:
        raise ClientError(f"Topic '{parsed.topic}' does not exist as expected")
    return found


def _list(client: SyncClient, parsed: argparse.Namespace) -> None:
    for topic in _matching(client, parsed):
        _say(topic.name)


def _named(parsed: argparse.Namespace) -> str:
    if parsed.topic is None:
        raise UsageError("--topic is missing")
    name: str = parsed.topic
    return name


def _assignment(text: str | None) -> dict[int, list[int]]:
    """`1:2,2:3`: brokers 1 and 2 for partition 0, 2 and 3 for partition 1."""
    if text is None:
        return {}
    try:
        return {index: [int(broker) for broker in part.split(":")] for index, part in enumerate(text.split(","))}
    except ValueError:
        raise UsageError(f"--replica-assignment {text!r} should look like 1:2,2:3") from None


def _create(client: SyncClient, parsed: argparse.Namespace) -> None:
    name = _named(parsed)
    if "." in name or "_" in name:
        _say(COLLISION)
    partitions = -1 if parsed.partitions is None else parsed.partitions
    replicas = -1 if parsed.replication_factor is None else parsed.replication_factor
    configs = dict(key_value(text) for text in parsed.config)
    wanted = NewTopic(name, partitions, replicas, configs, _assignment(parsed.replica_assignment))
    outcome = client.run(create_topics, [wanted])[name]
    if isinstance(outcome, Refusal):
        if outcome.code is ErrorCode.TOPIC_ALREADY_EXISTS and parsed.if_not_exists:
            return
        raise outcome
    _say(f"Created topic {name}.")


def _alter(client: SyncClient, parsed: argparse.Namespace) -> None:
    if parsed.config:
        raise UsageError("settings are altered with kafka-configs --alter --topic ... --add-config ...")
    if parsed.partitions is None:
        raise UsageError("--alter needs --partitions")
    _named(parsed)
    counts = {topic.name: parsed.partitions for topic in _matching(client, parsed)}
    # The assignment lists all partitions, those that are there already too.
    placed = list(_assignment(parsed.replica_assignment).values())
    assignments = None
    if placed:
        described = raise_first(client.run(describe_topics, list(counts)))
        assignments = {name: placed[len(topic.partitions) :] for name, topic in described.items()}
    if counts:
        raise_first(client.run(create_partitions, counts, assignments=assignments))


def _delete(client: SyncClient, parsed: argparse.Namespace) -> None:
    _named(parsed)
    names = [topic.name for topic in _matching(client, parsed)]
    if names:
        raise_first(client.run(delete_topics, names))


def _describe(client: SyncClient, parsed: argparse.Namespace) -> None:
    names = [topic.name for topic in _matching(client, parsed)]
    if not names:
        return
    topics = raise_first(client.run(describe_topics, names))
    moving = _reassignments(client)
    configs = raise_first(client.run(describe_configs, [Resource(ResourceKind.TOPIC, name) for name in names]))
    filtered = _only(parsed)
    for name, topic in topics.items():
        settings = configs.get(Resource(ResourceKind.TOPIC, name), [])
        own = [config for config in settings if not config.is_default]
        if parsed.topics_with_overrides and not own:
            continue
        if not filtered:
            replicas = len(topic.partitions[0].replicas) if topic.partitions else 0
            listed = ",".join(f"{config.name}={config.value}" for config in own)
            _say(
                f"Topic: {name}\tTopicId: {topic.id}\tPartitionCount: {len(topic.partitions)}\t"
                f"ReplicationFactor: {replicas}\tConfigs: {listed}"
            )
        if parsed.topics_with_overrides:
            continue
        for partition in topic.partitions:
            if not filtered or _is_shown(partition, parsed, settings):
                _say(_partition_line(name, partition, moving.get((name, partition.index))))


def _reassignments(client: SyncClient) -> dict[tuple[str, int], Reassignment]:
    try:
        return client.run(list_reassignments)
    except ClientError:
        # Not allowed or not known there: Kafka's tool shows the rest as well.
        return {}


def _only(parsed: argparse.Namespace) -> bool:
    return bool(
        parsed.under_replicated_partitions
        or parsed.unavailable_partitions
        or parsed.under_min_isr_partitions
        or parsed.at_min_isr_partitions
    )


def _is_shown(partition: DescribedPartition, parsed: argparse.Namespace, settings: list[Config]) -> bool:
    min_isr = next((int(config.value or 1) for config in settings if config.name == "min.insync.replicas"), 1)
    return bool(
        (parsed.under_replicated_partitions and len(partition.isr) < len(partition.replicas))
        or (parsed.unavailable_partitions and partition.leader_id < 0)
        or (parsed.under_min_isr_partitions and len(partition.isr) < min_isr)
        or (parsed.at_min_isr_partitions and len(partition.isr) == min_isr)
    )


def _partition_line(topic: str, partition: DescribedPartition, moving: Reassignment | None) -> str:
    def ids(found: Sequence[int] | None) -> str:
        return "N/A" if found is None else ",".join(map(str, found))

    leader = "none" if partition.leader_id < 0 else str(partition.leader_id)
    line = (
        f"\tTopic: {topic}\tPartition: {partition.index}\tLeader: {leader}\tReplicas: {ids(partition.replicas)}"
        f"\tIsr: {ids(partition.isr)}\tElr: {ids(partition.eligible_leaders)}"
        f"\tLastKnownElr: {ids(partition.last_known_eligible)}"
    )
    if moving is not None:
        line += f"\tAdding Replicas: {ids(moving.adding)}\tRemoving Replicas: {ids(moving.removing)}"
    return line
