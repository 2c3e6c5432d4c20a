"""What every command that talks to a broker has: where it is, and how to get in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from millstream.cli.declare import Parameter, UsageError, flag, option

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from millstream.client.sync import SyncClient

DEFAULT_SERVERS = "localhost:9092"
SERVERS_VARIABLE = "MILLSTREAM_BOOTSTRAP_SERVERS"
# A person waits in front of it; programs that can wait longer say so with `-X api.timeout.ms`.
API_TIMEOUT_MS = 20_000

SHARED: tuple[Parameter, ...] = (
    option(
        "--bootstrap-server",
        "--bootstrap-servers",
        "--broker-list",
        "-b",
        metavar="HOST:PORT,...",
        help=f"brokers to ask first (default: ${SERVERS_VARIABLE} or {DEFAULT_SERVERS})",
    ),
    option(
        "-X", repeat=True, metavar="NAME=VALUE", help="an option of the client, by librdkafka's name", dest="options"
    ),
    option("--command-config", "-F", metavar="FILE", help="a file with options of the client (name=value lines)"),
    flag("--json", help="print JSON"),
)


def client_options(servers: str | None, file: str | None, assignments: Iterable[str]) -> dict[str, str]:
    """Options from the file, then from the command line, which wins."""
    options = {"api.timeout.ms": str(API_TIMEOUT_MS), "client.id": "millstream-cli"}
    if file is not None:
        options |= read_properties(file)
    options |= dict(key_value(text) for text in assignments)
    if servers is not None:
        options["bootstrap.servers"] = servers
    if not {"bootstrap.servers", "metadata.broker.list"} & options.keys():
        options["bootstrap.servers"] = os.environ.get(SERVERS_VARIABLE, DEFAULT_SERVERS)
    return options


def connect(parsed: argparse.Namespace) -> SyncClient:
    options = client_options(parsed.bootstrap_server, parsed.command_config, parsed.options)
    return open_client(options)


def open_client(options: dict[str, str]) -> SyncClient:
    from millstream.client.sync import SyncClient

    return SyncClient(options)


def key_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"{text!r} should have the form name=value")
    return name.strip(), value


def read_properties(path: str) -> dict[str, str]:
    """A file in Java's properties format."""
    from millstream.settings.properties import parse_properties

    try:
        with open(path, encoding="utf-8") as file:
            return parse_properties(file.read())
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{path} could not be read: {why}") from error
