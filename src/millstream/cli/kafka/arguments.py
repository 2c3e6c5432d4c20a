"""What the tools have in common: options as jopt-simple reads them, where the brokers are, words of the past."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, NoReturn

from millstream.cli.connect import API_TIMEOUT_MS, key_value, read_properties
from millstream.cli.declare import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ZOOKEEPER_GONE = "Kafka has no ZooKeeper any more; say where a broker is instead: {modern}"


class ToolParser(argparse.ArgumentParser):
    """Long options with unambiguous abbreviations, `--name value` or `--name=value`."""

    def __init__(self, tool: str, description: str) -> None:
        super().__init__(prog=tool, description=description, allow_abbrev=True)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].lower()}{message[1:]} (see {self.prog} --help)")

    def multiple(self, *names: str, help: str, metavar: str | None = None) -> None:  # noqa: A002 - argparse's word
        self.add_argument(*names, action="append", default=[], help=help, metavar=metavar)

    def flag(self, *names: str, help: str) -> None:  # noqa: A002
        self.add_argument(*names, action="store_true", help=help)

    def connection(self, *config_names: str) -> None:
        """Where the brokers are and how to get in; --broker-list is what --bootstrap-server was called once."""
        self.add_argument(
            "--bootstrap-server",
            "--broker-list",
            "--bootstrap-servers",
            metavar="HOST:PORT,...",
            help="brokers to ask first",
        )
        self.add_argument("--zookeeper", help=argparse.SUPPRESS)
        self.add_argument(
            "--command-config", *config_names, dest="command_config", metavar="FILE", help="a file with client options"
        )

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse; those who still say --zookeeper are shown how their command looks today."""
        parsed = self.parse_args(list(words))
        if getattr(parsed, "zookeeper", None) is not None:
            raise UsageError(ZOOKEEPER_GONE.format(modern=shlex.join((self.prog, *_modern(words)))))
        return parsed


def _modern(words: Sequence[str]) -> list[str]:
    """The same words with a broker in ZooKeeper's place."""
    modern: list[str] = []
    rest = iter(words)
    for word in rest:
        if word.partition("=")[0] == "--zookeeper":
            modern += ("--bootstrap-server", "localhost:9092")
            if "=" not in word:
                next(rest, None)
        else:
            modern.append(word)
    return modern


def client_options_of(parsed: argparse.Namespace, properties: Iterable[str] = ()) -> dict[str, str]:
    """The client's options: the file, then single properties, then the address."""
    options = {"api.timeout.ms": str(API_TIMEOUT_MS), "client.id": "millstream-cli"}
    if parsed.command_config is not None:
        options |= read_properties(parsed.command_config)
    options |= dict(key_value(text) for text in properties)
    if parsed.bootstrap_server is not None:
        options["bootstrap.servers"] = parsed.bootstrap_server
    if "bootstrap.servers" not in options:
        raise UsageError("--bootstrap-server is missing: the address of a broker, such as localhost:9092")
    return options


def properties_of(texts: Iterable[str]) -> dict[str, str]:
    """`name=value` options; Kafka's tools also take a bare name for an empty value."""
    return dict(key_value(text if "=" in text else f"{text}=") for text in texts)


def yes(text: str | None) -> bool:
    return (text or "").strip().lower() == "true"
