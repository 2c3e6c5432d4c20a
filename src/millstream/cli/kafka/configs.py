"""`kafka-configs`: --describe and --alter settings of topics, brokers, broker loggers, groups and client metrics."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from millstream.cli.connect import open_client, read_properties
from millstream.cli.declare import UsageError
from millstream.cli.kafka.arguments import ToolParser, client_options_of
from millstream.client.admin import raise_first
from millstream.client.admin.cluster import describe_cluster
from millstream.client.admin.configs import (
    Change,
    Config,
    ConfigSource,
    Operation,
    Resource,
    ResourceKind,
    alter_configs,
    describe_configs,
    list_config_resources,
)
from millstream.client.admin.topics import list_topics
from millstream.client.errors import ClientError, Refusal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from millstream.client.sync import SyncClient

# --entity-type -> kind; what is left out (users, clients, ips) has quotas and credentials instead of settings.
ENTITY_TYPES = {
    "topics": ResourceKind.TOPIC,
    "brokers": ResourceKind.BROKER,
    "broker-loggers": ResourceKind.BROKER_LOGGER,
    "groups": ResourceKind.GROUP,
    "client-metrics": ResourceKind.CLIENT_METRICS,
}
NOT_HERE = ("users", "clients", "ips")
OWN_SOURCES = {
    ResourceKind.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ResourceKind.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    ResourceKind.BROKER_LOGGER: ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
    ResourceKind.GROUP: ConfigSource.DYNAMIC_GROUP_CONFIG,
    ResourceKind.CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
}


def run(words: Sequence[str]) -> int:
    parsed = _parser().read(words)
    if parsed.describe == parsed.alter:
        raise UsageError("exactly one of --describe and --alter must be given")
    if parsed.bootstrap_controller is not None and parsed.bootstrap_server is None:
        parsed.bootstrap_server = parsed.bootstrap_controller
    kind, name = _entity(parsed)
    with open_client(client_options_of(parsed)) as client:
        try:
            if parsed.alter:
                _alter(client, parsed, kind, name)
            else:
                _describe(client, kind, name, everything=parsed.all)
        except ClientError as error:
            said = error.broker_message if isinstance(error, Refusal) and error.broker_message else str(error)
            sys.stderr.write(f"Error while executing config command: {said}\n")
            return 1
    return 0


def _parser() -> ToolParser:
    parser = ToolParser("kafka-configs", "Describe and alter settings.")
    parser.connection()
    parser.add_argument("--bootstrap-controller", metavar="HOST:PORT", help="controllers to ask instead of brokers")
    parser.flag("--describe", help="show settings")
    parser.flag("--alter", help="change settings")
    parser.flag("--all", help="show also those that have their defaults")
    parser.multiple("--entity-type", help=", ".join(ENTITY_TYPES))
    parser.multiple("--entity-name", help="a topic's name, a broker's id, ...")
    parser.flag("--entity-default", help="the default of all brokers")
    parser.add_argument("--topic", help="short for --entity-type topics --entity-name")
    parser.add_argument("--broker", help="short for --entity-type brokers --entity-name")
    parser.add_argument("--broker-logger", help="short for --entity-type broker-loggers --entity-name")
    parser.add_argument("--group", help="short for --entity-type groups --entity-name")
    parser.add_argument("--client-metrics", help="short for --entity-type client-metrics --entity-name")
    parser.flag("--broker-defaults", help="short for --entity-type brokers --entity-default")
    parser.add_argument("--add-config", metavar="A=1,B=[2,3]", help="set these")
    parser.add_argument("--add-config-file", metavar="FILE", help="set those of a properties file")
    parser.add_argument("--delete-config", metavar="A,B", help="back to the defaults")
    parser.flag("--force", help="accepted, nothing is asked anyway")
    return parser


def _entity(parsed: argparse.Namespace) -> tuple[ResourceKind, str | None]:
    """(kind, name); the name is None for all of the kind, and empty for the default of all brokers."""
    short = {
        ResourceKind.TOPIC: parsed.topic,
        ResourceKind.BROKER: "" if parsed.broker_defaults else parsed.broker,
        ResourceKind.BROKER_LOGGER: parsed.broker_logger,
        ResourceKind.GROUP: parsed.group,
        ResourceKind.CLIENT_METRICS: parsed.client_metrics,
    }
    named = [(kind, name) for kind, name in short.items() if name is not None]
    for text in parsed.entity_type:
        if text in NOT_HERE:
            raise UsageError(f"--entity-type {text}: quotas and credentials are not handled by this tool")
        if text not in ENTITY_TYPES:
            raise UsageError(f"--entity-type must be one of {', '.join(ENTITY_TYPES)}, not {text!r}")
        name = "" if parsed.entity_default else (parsed.entity_name or [None])[0]
        named.append((ENTITY_TYPES[text], name))
    if len(named) != 1:
        raise UsageError("exactly one entity must be given, such as --topic NAME or --entity-type brokers")
    return named[0]


def _label(kind: ResourceKind, name: str) -> str:
    return f"{kind.name.lower().replace('_', '-')} {name}"


def _describe(client: SyncClient, kind: ResourceKind, name: str | None, *, everything: bool) -> None:
    listed = name is None
    names = _all_names(client, kind) if name is None else [name]
    for each in names:
        found = client.run(describe_configs, [Resource(kind, each)], synonyms=True)
        outcome = found.get(Resource(kind, each), [])
        if isinstance(outcome, Refusal):
            if kind is ResourceKind.TOPIC:
                sys.stdout.write(f"The topic '{each}' doesn't exist and doesn't have dynamic config.\n")
                continue
            raise outcome
        source = OWN_SOURCES[kind] if each else ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        # What is printed as "dynamic" is what was set on this very entity.
        shown = [config for config in outcome if (everything and each) or config.source is source]
        shown.sort(key=lambda config: config.name)
        if listed and kind is ResourceKind.TOPIC and not shown:
            continue
        if each:
            heading = f"{'All' if everything else 'Dynamic'} configs for {_label(kind, each)} are:"
        else:
            heading = "Default configs for brokers in the cluster are:"
        sys.stdout.write(f"{heading}\n" + "".join(f"  {_line(config)}\n" for config in shown))


def _all_names(client: SyncClient, kind: ResourceKind) -> list[str]:
    if kind is ResourceKind.TOPIC:
        return [topic.name for topic in client.run(list_topics)]
    if kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER):
        ids = [str(broker.id) for broker in client.run(describe_cluster).brokers]
        return [*ids, ""] if kind is ResourceKind.BROKER else ids
    return [resource.name for resource in client.run(list_config_resources, [kind])]


def _line(config: Config) -> str:
    synonyms = ", ".join(f"{each.source.name}:{each.name}={_shown(each.value)}" for each in config.synonyms)
    return f"{config.name}={_shown(config.value)} sensitive={str(config.sensitive).lower()} synonyms={{{synonyms}}}"


def _shown(value: str | None) -> str:
    return "null" if value is None else value


def _alter(client: SyncClient, parsed: argparse.Namespace, kind: ResourceKind, name: str | None) -> None:
    if name is None:
        raise UsageError("--alter needs the name of one entity, or --entity-default")
    added = split_configs(parsed.add_config or "")
    if parsed.add_config_file is not None:
        added |= read_properties(parsed.add_config_file)
    deleted = [each.strip() for each in (parsed.delete_config or "").split(",") if each.strip()]
    if not added and not deleted:
        raise UsageError("--alter needs --add-config, --add-config-file or --delete-config")
    changes = [Change(each, value) for each, value in added.items()]
    changes += [Change(each, None, Operation.DELETE) for each in deleted]
    raise_first(client.run(alter_configs, {Resource(kind, name): changes}))
    if name:
        sys.stdout.write(f"Completed updating config for {_label(kind, name)}.\n")
    else:
        sys.stdout.write("Completed updating default config for brokers in the cluster.\n")


def split_configs(text: str) -> dict[str, str]:
    """`a=1,b=[2,3],c=4`: commas inside of brackets belong to the value."""
    found: dict[str, str] = {}
    for part in re.split(r",(?![^\[\]]*\])", text):
        if part.strip():
            name, equals, value = part.partition("=")
            if not equals:
                raise UsageError(f"--add-config: {part!r} should have the form name=value")
            value = value.strip()
            found[name.strip()] = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    return found
