"""`millstream topic`: list, create, describe, alter and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.cli.connect import key_value
from millstream.cli.declare import Group, UsageError, argument, flag, option
from millstream.cli.output import Rows
from millstream.client.admin import raise_first
from millstream.client.admin.configs import (
    Change,
    Operation,
    Resource,
    ResourceKind,
    alter_configs,
    describe_configs,
)
from millstream.client.admin.topics import (
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
    describe_topics,
    list_topics,
)

if TYPE_CHECKING:
    from millstream.client.sync import SyncClient

GROUP = Group("topic", "Topics: list, create, describe, alter and delete them.")
GROUPS = {"topic": GROUP}


@GROUP.command("list", flag("--internal", help="also Kafka's own topics"), example="millstream topic list")
def list_(client: SyncClient, *, internal: bool) -> Rows:
    """List topics."""
    topics = [topic for topic in client.run(list_topics) if internal or not topic.internal]
    return Rows(
        ("topic", "partitions", "replicas"),
        [
            (topic.name, len(topic.partitions), len(topic.partitions[0].replicas))
            for topic in topics
            if topic.partitions
        ],
    )


@GROUP.command(
    "create",
    argument("name", "the topic's name"),
    option("--partitions", "-p", type=int, default=-1, help="how many (default: the broker's num.partitions)"),
    option("--replicas", "--replication-factor", "-r", type=int, default=-1, help="copies of each partition"),
    option("--config", "-c", repeat=True, metavar="NAME=VALUE", help="a setting of the topic"),
    flag("--if-not-exists", help="do nothing if it is there already"),
    flag("--dry-run", help="check only"),
    example="millstream topic create orders --partitions 6 --config retention.ms=86400000",
)
def create(
    client: SyncClient,
    *,
    name: str,
    partitions: int,
    replicas: int,
    config: list[str],
    if_not_exists: bool,
    dry_run: bool,
) -> Rows:
    """Create a topic."""
    columns = ("topic", "id", "partitions", "replicas")
    if if_not_exists and any(topic.name == name for topic in client.run(list_topics)):
        return Rows(columns, [], note=f"topic {name!r} exists already")
    wanted = NewTopic(name, partitions, replicas, dict(key_value(text) for text in config))
    created = raise_first(client.run(create_topics, [wanted], validate_only=dry_run))[name]
    note = "checked, nothing was created" if dry_run else ""
    row = (name, None if dry_run else str(created.id), created.partitions, created.replicas)
    return Rows(columns, [row], note=note)


@GROUP.command(
    "describe",
    argument("names", "topics (default: all)", nargs="*"),
    flag("--configs", help="their settings instead of their partitions"),
    flag("--unhealthy", help="only partitions without a leader or with replicas that are not in sync"),
    example="millstream topic describe orders",
)
def describe(client: SyncClient, *, names: list[str], configs: bool, unhealthy: bool) -> Rows:
    """Show the partitions of topics, or their settings."""
    names = names or [topic.name for topic in client.run(list_topics)]
    if configs:
        return _describe_configs(client, names)
    topics = raise_first(client.run(describe_topics, names)) if names else {}
    columns = ("topic", "partition", "leader", "replicas", "isr", "offline")
    rows = [
        (name, part.index, None if part.leader_id < 0 else part.leader_id, part.replicas, part.isr, part.offline)
        for name, topic in topics.items()
        for part in topic.partitions
        if not unhealthy or part.leader_id < 0 or len(part.isr) < len(part.replicas)
    ]
    return Rows(columns, rows)


def _describe_configs(client: SyncClient, names: list[str]) -> Rows:
    resources = [Resource(ResourceKind.TOPIC, name) for name in names]
    found = raise_first(client.run(describe_configs, resources)) if resources else {}
    return Rows(
        ("topic", "name", "value", "source"),
        [
            (resource.name, config.name, config.value, config.source.name)
            for resource, configs in found.items()
            for config in configs
        ],
    )


@GROUP.command(
    "alter",
    argument("name", "the topic's name"),
    option("--partitions", "-p", type=int, help="raise the number of partitions to this"),
    option("--config", "-c", repeat=True, metavar="NAME=VALUE", help="set a setting"),
    option("--delete-config", repeat=True, metavar="NAME", help="back to the default"),
    example="millstream topic alter orders --partitions 12 --config retention.ms=3600000",
)
def alter(
    client: SyncClient, *, name: str, partitions: int | None, config: list[str], delete_config: list[str]
) -> Rows:
    """Give a topic more partitions or other settings."""
    if partitions is None and not config and not delete_config:
        raise UsageError("say what to alter: --partitions, --config or --delete-config")
    rows: list[tuple[str, str, str | None]] = []
    changes = [Change(*key_value(text)) for text in config]
    changes += [Change(each, None, Operation.DELETE) for each in delete_config]
    if changes:
        raise_first(client.run(alter_configs, {Resource(ResourceKind.TOPIC, name): changes}))
        rows += [(name, change.name, change.value) for change in changes]
    if partitions is not None:
        raise_first(client.run(create_partitions, {name: partitions}))
        rows.append((name, "partitions", str(partitions)))
    return Rows(("topic", "altered", "to"), rows)


@GROUP.command(
    "delete",
    argument("names", "topics to delete, with all their records", nargs="+"),
    flag("--if-exists", help="pass over those that do not exist"),
    example="millstream topic delete orders",
)
def delete(client: SyncClient, *, names: list[str], if_exists: bool) -> Rows:
    """Delete topics."""
    if if_exists:
        present = {topic.name for topic in client.run(list_topics)}
        names = [name for name in names if name in present]
    outcomes = client.run(delete_topics, names) if names else {}
    raise_first(outcomes)
    return Rows(("deleted",), [(name,) for name in names])
