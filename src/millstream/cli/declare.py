"""How a command is declared: a function, with its arguments and options beside its name.

    TOPIC = Group("topic", "Topics.")

    @TOPIC.command("create", argument("name", "its name"), option("--partitions", "-p", type=int, default=-1, help="…"))
    def create(client: SyncClient, *, name: str, partitions: int) -> Rows: ...

The parser behind it is argparse, because it is there: typer would be nicer to declare with, but costs 140 ms and
pydantic at every start, more than the whole command needs.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.cli.output import Result


class UsageError(Exception):
    """The command line makes no sense; one sentence says why."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument or option, as argparse takes it."""

    names: tuple[str, ...]
    settings: dict[str, Any]


def argument(name: str, help: str, **settings: Any) -> Parameter:  # noqa: A002 - argparse's word
    """A word by its place."""
    return Parameter((name,), {"help": help, **settings})


def option(*names: str, help: str, **settings: Any) -> Parameter:  # noqa: A002
    """A word by its name; `repeat=True` collects several into a list."""
    if settings.pop("repeat", False):
        settings |= {"action": "append", "default": []}
    return Parameter(names, {"help": help, **settings})


def flag(*names: str, help: str, **settings: Any) -> Parameter:  # noqa: A002
    """An option without a value."""
    return Parameter(names, {"help": help, "action": "store_true", **settings})


@dataclass(slots=True)
class Command:
    """A declared command."""

    name: str
    run: Callable[..., Result]
    parameters: tuple[Parameter, ...]
    offline: bool = False
    example: str = ""

    @property
    def summary(self) -> str:
        return (self.run.__doc__ or "").strip().partition("\n")[0]


@dataclass(slots=True)
class Group:
    """Commands under one word; a command without a name is the word itself."""

    name: str
    summary: str
    commands: dict[str, Command] = field(default_factory=dict)

    def command(
        self, name: str, *parameters: Parameter, offline: bool = False, example: str = ""
    ) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
        """Declare a command; an `offline` one needs no broker and gets no client."""

        def declared(run: Callable[..., Result]) -> Callable[..., Result]:
            self.commands[name] = Command(name, run, parameters, offline, example)
            return run

        return declared


class Parser(argparse.ArgumentParser):
    """argparse, with its complaints as exceptions."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].lower()}{message[1:]} (see {self.prog} --help)")


def build_parser(command: Command, program: str, shared: Sequence[Parameter]) -> Parser:
    epilog = f"example:\n  $ {command.example}" if command.example else None
    parser = Parser(
        prog=program,
        description=(command.run.__doc__ or "").strip(),
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for parameter in (*command.parameters, *([] if command.offline else shared)):
        parser.add_argument(*parameter.names, **parameter.settings)
    return parser


def choose(group: Group, words: Sequence[str]) -> tuple[Command, str, list[str]]:
    """(command, program name, the rest of the words)."""
    alone = group.commands.get("")
    if alone is not None:
        return alone, f"millstream {group.name}", list(words)
    if words and words[0] in group.commands:
        return group.commands[words[0]], f"millstream {group.name} {words[0]}", list(words[1:])
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(group_help(group))
        raise SystemExit(0 if words else 2)
    known = ", ".join(group.commands)
    raise UsageError(f"there is no command 'millstream {group.name} {words[0]}'; there are: {known}")


def group_help(group: Group) -> str:
    width = max(len(name) for name in group.commands) + 2
    lines = [f"  {name:<{width}}{command.summary}" for name, command in group.commands.items()]
    return f"usage: millstream {group.name} COMMAND ...\n\n{group.summary}\n\ncommands:\n" + "\n".join(lines) + "\n"
