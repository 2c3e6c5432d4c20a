"""The entry point: finds the command, runs it, and turns every end into an exit code.

A refusal is one sentence on stderr and exit code 1, a command line that makes no sense 2. Ctrl-C and a reader that
went away (`| head`) end quietly, with the codes that a shell expects (130, 141).
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.cli.declare import Group

# word -> (module with its GROUP, what it is about). Only the module that is asked for is imported.
GROUPS = {
    "broker": ("millstream.cli.broker", "run a broker"),
    "topic": ("millstream.cli.topic", "list, create, describe, alter and delete topics"),
    "config": ("millstream.cli.config", "settings of topics, brokers and groups"),
    "produce": ("millstream.cli.produce", "write records"),
    "consume": ("millstream.cli.consume", "read records"),
    "group": ("millstream.cli.group", "consumer groups: members, lag, offsets"),
    "transaction": ("millstream.cli.transaction", "list, describe and abort transactions"),
    "streams": ("millstream.cli.streams", "streams applications: describe, reset"),
    "cluster": ("millstream.cli.cluster", "run a local cluster; brokers, quorum, leaders, moves, disks"),
    "log": ("millstream.cli.log", "look into log directories"),
    "format": ("millstream.cli.storage", "prepare a data directory"),
    "kafka-properties": ("millstream.cli.storage", "the server.properties for Apache Kafka on our directory"),
    "shims": ("millstream.cli.shims", "put kafka-topics and its relatives into a directory"),
}
# The names of Kafka's own tools, with and without .sh.
TOOLS = {
    "kafka-topics": "millstream.cli.kafka.topics",
    "kafka-configs": "millstream.cli.kafka.configs",
    "kafka-console-producer": "millstream.cli.kafka.console_producer",
    "kafka-console-consumer": "millstream.cli.kafka.console_consumer",
    "kafka-consumer-groups": "millstream.cli.kafka.consumer_groups",
    "kafka-transactions": "millstream.cli.kafka.transactions",
    "kafka-streams-application-reset": "millstream.cli.kafka.streams_application_reset",
    "kafka-server-start": "millstream.cli.kafka.server_start",
}
INTERRUPTED, PIPE_CLOSED = 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout once more at its end; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(overview())
        return 0
    if words[0] in ("-V", "--version", "version"):
        return _version()
    name = words[0].removesuffix(".sh")
    if name not in TOOLS and name not in GROUPS:
        return _complain(f"there is no command {words[0]!r}; see millstream --help", code=2)
    from millstream.cli.declare import UsageError
    from millstream.client.errors import ClientError
    from millstream.protocol.errors import BrokerError

    try:
        if name in TOOLS:
            code: int = import_module(TOOLS[name]).run(words[1:])
            return code
        return _run_group(import_module(GROUPS[name][0]).GROUPS[name], words[1:])
    except UsageError as error:
        return _complain(str(error), code=2)
    except (ClientError, BrokerError) as error:
        return _complain(str(error))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)


def _run_group(group: Group, words: list[str]) -> int:
    from millstream.cli.connect import SHARED, connect
    from millstream.cli.declare import build_parser, choose
    from millstream.cli.output import emit

    command, program, rest = choose(group, words)
    given = vars(parsed := build_parser(command, program, SHARED).parse_intermixed_args(rest))
    if command.offline:
        as_json = given.pop("json", False)
        return emit(command.run(**given), as_json=as_json)
    with connect(parsed) as client:
        for name in ("bootstrap_server", "options", "command_config"):
            del given[name]
        as_json = given.pop("json")
        if group.name in STREAMING:
            given["as_json"] = as_json
        return emit(command.run(client, **given), as_json=as_json)


# Commands that make their own JSON, one object per line.
STREAMING = ("consume",)


def overview() -> str:
    width = max(map(len, GROUPS)) + 2
    commands = "\n".join(f"  {name:<{width}}{about}" for name, (_, about) in GROUPS.items())
    return (
        "usage: millstream COMMAND ...\n\n"
        "Kafka without the JVM: a broker, and commands for any Kafka cluster.\n\n"
        f"commands:\n{commands}\n\n"
        f"by the names of Kafka's tools:\n  {', '.join(TOOLS)}\n\n"
        "millstream COMMAND --help tells more.\n"
    )


def _version() -> int:
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("millstream")
    except PackageNotFoundError:
        found = "unknown (not installed)"
    sys.stdout.write(f"millstream {found}\n")
    return 0


def _complain(sentence: str, *, code: int = 1) -> int:
    sys.stderr.write(f"millstream: {sentence}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
