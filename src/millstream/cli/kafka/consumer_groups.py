"""`kafka-consumer-groups`: --list, --describe, --delete, --reset-offsets, --delete-offsets, --validate-regex.

What goes wrong with a group is told on standard output, with exit code 0, as Kafka's tool does it: scripts that ask
for a group before it exists count on that. A broker that cannot be reached at all is exit code 1 here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from millstream.cli.connect import open_client
from millstream.cli.declare import UsageError
from millstream.cli.group_lag import group_positions
from millstream.cli.group_reset import parse_scope
from millstream.cli.kafka import consumer_groups_tables as tables
from millstream.cli.kafka.arguments import ToolParser, client_options_of
from millstream.cli.kafka.consumer_groups_reset import RESETS, reset_offsets
from millstream.cli.kafka.java_errors import java_exception, java_sentence
from millstream.cli.output import say
from millstream.client.admin import raise_first
from millstream.client.admin.described_groups import describe_groups
from millstream.client.admin.groups import delete_groups, delete_offsets, list_groups
from millstream.client.admin.topics import list_topics
from millstream.client.errors import Refusal
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Sequence

    from millstream.client.admin.described_groups import GroupDescription
    from millstream.client.admin.groups import GroupListing
    from millstream.client.sync import SyncClient

ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
STATES = ("Assigning", "CompletingRebalance", "Dead", "Empty", "PreparingRebalance", "Reconciling", "Stable")
KINDS = ("Classic", "Consumer")
REBALANCING = ("Assigning", "CompletingRebalance", "PreparingRebalance", "Reconciling")
# This tool is about consumers and about groups that are only offsets; Connect's workers and others are left out.
PROTOCOL_TYPES = ("", "consumer")


def run(words: Sequence[str]) -> int:
    parsed = _parser().read(words)
    if parsed.validate_regex is not None:
        return _validate_regex(parsed.validate_regex)
    chosen = [action for action in ACTIONS if getattr(parsed, action)]
    if len(chosen) != 1:
        names = ", ".join(f"--{action.replace('_', '-')}" for action in ACTIONS)
        raise UsageError(f"exactly one of {names} and --validate-regex must be given")
    _check(parsed, chosen[0])
    actions = {
        "list": _list,
        "describe": _describe,
        "delete": _delete,
        "reset_offsets": reset_offsets,
        "delete_offsets": _delete_offsets,
    }
    options = client_options_of(parsed)
    if parsed.timeout is not None:
        options["api.timeout.ms"] = str(parsed.timeout)
    with open_client(options) as client:
        if parsed.all_groups:
            parsed.group = [group.id for group in _listed(client)]
        try:
            actions[chosen[0]](client, parsed)
        except Refusal as refusal:
            said = java_exception(refusal)
            sys.stdout.write(f"\nError: Executing consumer group command failed due to {said}\n")
    return 0


def _parser() -> ToolParser:
    parser = ToolParser("kafka-consumer-groups", "List, describe, delete and reset consumer groups.")
    parser.connection()
    parser.flag("--list", help="list groups")
    parser.flag("--describe", help="show a group's offsets and lag, members or state")
    parser.flag("--delete", help="delete groups without members")
    parser.flag("--reset-offsets", help="move the offsets of groups without members")
    parser.flag("--delete-offsets", help="delete a group's offsets of some topics")
    parser.add_argument("--validate-regex", metavar="REGEX", help="whether a pattern is one in RE2's syntax")
    parser.multiple("--group", help="a group; may be given several times")
    parser.flag("--all-groups", help="all groups")
    parser.multiple("--topic", metavar="TOPIC[:0,1]", help="a topic, or some of its partitions")
    parser.flag("--all-topics", help="all partitions that the group has offsets for")
    parser.flag("--offsets", help="describe offsets and lag (the default)")
    parser.flag("--members", help="describe members")
    parser.add_argument("--state", nargs="?", const="", help="describe the state; with --list show it, or choose by it")
    parser.add_argument("--type", nargs="?", const="", help="with --list: show the type, or choose by it")
    parser.flag("--verbose", help="describe in more detail")
    parser.add_argument("--timeout", type=int, metavar="MS", help="how long to wait at the most")
    parser.flag("--dry-run", help="only show the new offsets (the default)")
    parser.flag("--execute", help="set the new offsets")
    parser.flag("--export", help="print the new offsets as CSV")
    parser.flag("--to-earliest", help="to the oldest record")
    parser.flag("--to-latest", help="to the end")
    parser.flag("--to-current", help="to where the group stands")
    parser.add_argument("--to-offset", type=int, help="to this offset")
    parser.add_argument("--to-datetime", metavar="TIME", help="to a time: YYYY-MM-DDThh:mm:ss.sss, UTC")
    parser.add_argument("--by-duration", metavar="DURATION", help="so long ago: PnDTnHnMnS")
    parser.add_argument("--shift-by", type=int, metavar="COUNT", help="so many records forward, or back")
    parser.add_argument("--from-file", metavar="FILE", help="to the offsets of a CSV file")
    return parser


def _check(parsed: argparse.Namespace, action: str) -> None:
    name = f"--{action.replace('_', '-')}"
    if parsed.group and parsed.all_groups:
        raise UsageError("--group and --all-groups exclude each other")
    if action == "delete_offsets":
        if len(parsed.group) != 1 or not parsed.topic:
            raise UsageError("--delete-offsets needs one --group, and --topic")
    elif action != "list" and not parsed.group and not parsed.all_groups:
        raise UsageError(f"{name} needs --group or --all-groups")
    if action == "describe" and (parsed.state or parsed.members + parsed.offsets + (parsed.state is not None) > 1):
        raise UsageError("--describe takes one of --members, --offsets and --state, without a value")
    if parsed.type is not None and action != "list":
        raise UsageError(f"--type goes with --list, not with {name}")
    if action == "delete" and parsed.topic:
        raise UsageError("--delete is about whole groups; --delete-offsets forgets single topics")
    if action == "reset_offsets":
        _check_reset(parsed)


def _check_reset(parsed: argparse.Namespace) -> None:
    if parsed.dry_run and parsed.execute:
        raise UsageError("--dry-run and --execute exclude each other")
    if sum(getattr(parsed, reset) is not None and getattr(parsed, reset) is not False for reset in RESETS) != 1:
        names = ", ".join(f"--{reset.replace('_', '-')}" for reset in RESETS)
        raise UsageError(f"--reset-offsets takes one of {names}")


def _listed(client: SyncClient, *, states: Collection[str] = (), kinds: Collection[str] = KINDS) -> list[GroupListing]:
    found = client.run(list_groups, states=states, kinds=kinds)
    return [group for group in found if group.protocol_type in PROTOCOL_TYPES]


def _chosen(option: str, text: str | None, known: Sequence[str]) -> list[str]:
    if not text:
        return []
    by_name = {name.lower(): name for name in known}
    wanted = [part.strip().lower() for part in text.split(",")]
    if any(part not in by_name for part in wanted):
        raise UsageError(f"{option} {text!r} is not known; there are {', '.join(known)}")
    return [by_name[part] for part in wanted]


def _list(client: SyncClient, parsed: argparse.Namespace) -> None:
    states = _chosen("--state", parsed.state, STATES)
    groups = _listed(client, states=states, kinds=_chosen("--type", parsed.type, KINDS) or KINDS)
    sys.stdout.write(tables.listed(groups, with_kind=parsed.type is not None, with_state=parsed.state is not None))


def _describe(client: SyncClient, parsed: argparse.Namespace) -> None:
    names = sorted(set(parsed.group))
    for group in raise_first(client.run(describe_groups, names)).values():
        if not group.is_of_consumers:
            raise UsageError(f"group {group.id!r} is not a consumer group, but one of {group.protocol_type}")
        _warn(group)
        if parsed.members:
            sys.stdout.write(tables.members(group, verbose=parsed.verbose))
        elif parsed.state is not None:
            sys.stdout.write(tables.state(group, _coordinator(client, group), verbose=parsed.verbose))
        elif positions := client.run(group_positions, group):
            sys.stdout.write(tables.offsets(group.id, positions, verbose=parsed.verbose))


def _warn(group: GroupDescription) -> None:
    sys.stdout.flush()
    if group.state == "Empty":
        say(f"\nConsumer group '{group.id}' has no active members.")
    elif group.state in REBALANCING:
        say(f"\nWarning: Consumer group '{group.id}' is rebalancing.")


def _coordinator(client: SyncClient, group: GroupDescription) -> str:
    broker = client.client.nodes.brokers[group.coordinator_id]
    return f"{broker.address.host}:{broker.address.port}  ({broker.id})"


def _delete(client: SyncClient, parsed: argparse.Namespace) -> None:
    outcomes = client.run(delete_groups, parsed.group)
    deleted = ", ".join(f"'{group}'" for group, refusal in outcomes.items() if refusal is None)
    refused = {group: refusal for group, refusal in outcomes.items() if refusal is not None}
    if not refused:
        sys.stdout.write(f"Deletion of requested consumer groups ({deleted}) was successful.\n")
        return
    sys.stdout.write("\nError: Deletion of some consumer groups failed:\n")
    for group, refusal in refused.items():
        sys.stdout.write(f"* Group '{group}' could not be deleted due to: {java_exception(refusal)}\n")
    if deleted:
        sys.stdout.write(f"\nThese consumer groups were deleted successfully: {deleted}\n")


def _delete_offsets(client: SyncClient, parsed: argparse.Namespace) -> None:
    (group,) = parsed.group
    places: list[tuple[str, int]] = []
    statuses: dict[tuple[str, int], str] = {}
    topics = {topic.name: topic for topic in client.run(list_topics)}
    for name, indexes in parse_scope(parsed.topic).items():
        if indexes is not None:
            places += [(name, index) for index in indexes]
        elif name in topics:
            places += [(name, partition.index) for partition in topics[name].partitions]
        else:
            statuses[name, -1] = _failed(Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    try:
        outcomes = client.run(delete_offsets, group, places) if places else {}
    except Refusal as refusal:
        sys.stdout.write(f"\nError: {java_sentence(refusal)}\n")
        statuses |= dict.fromkeys(places, _failed(refusal))
    else:
        if any(outcomes.values()):
            sys.stdout.write("\nError: Encountered some partition-level error, see the follow-up details.\n")
        else:
            sys.stdout.write(f"Request succeeded for deleting offsets from group {group}.\n")
        statuses |= {
            place: "Successful" if refusal is None else _failed(refusal) for place, refusal in outcomes.items()
        }
    sys.stdout.write(tables.deleted_offsets(statuses))


def _failed(refusal: Refusal) -> str:
    return f"Error: {java_exception(refusal)}"


def _validate_regex(pattern: str) -> int:
    try:
        import re2  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError("--validate-regex needs the package google-re2, which is not installed here") from None
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as refusal:
        reason = refusal.args[0]
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        sys.stdout.write(f"The regular expression `{pattern}` is invalid: {text}.\n")
    else:
        sys.stdout.write(f"The regular expression `{pattern}` is valid.\n")
    return 0
