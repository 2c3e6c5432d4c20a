"""`millstream group`: who reads what for whom, how far they are, and where they shall go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.cli.declare import Group, UsageError, argument, flag, option
from millstream.cli.group_csv import read_offsets, write_offsets
from millstream.cli.group_lag import group_positions
from millstream.cli.group_reset import (
    Plan,
    ShiftBy,
    ToCurrent,
    ToListed,
    ToOffset,
    ToTime,
    active_now,
    at_time,
    carry_out,
    make_plan,
    parse_scope,
    partitions_in,
)
from millstream.cli.output import Lines, Rows, say
from millstream.cli.times import parse_duration_ms, parse_time_ms
from millstream.client.admin import raise_first
from millstream.client.admin.described_groups import describe_groups
from millstream.client.admin.groups import delete_groups, list_groups
from millstream.client.errors import ClientError, Refusal
from millstream.client.offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from millstream.cli.group_reset import Target
    from millstream.client.admin.described_groups import GroupDescription
    from millstream.client.sync import SyncClient

GROUP = Group("group", "Consumer groups: members, lag, offsets.")
GROUPS = {"group": GROUP}


@GROUP.command(
    "list",
    option("--state", repeat=True, help="only groups in this state: stable, empty, ..."),
    option("--type", repeat=True, help="only groups of this type: classic, consumer, ..."),
    example="millstream group list --state stable",
)
def list_(client: SyncClient, *, state: list[str], type: list[str]) -> Rows:  # noqa: A002 - the option's name
    """List groups."""
    return Rows(
        ("group", "type", "protocol", "state", "coordinator"),
        [
            (group.id, group.kind or None, group.protocol_type or None, group.state or None, group.coordinator_id)
            for group in client.run(list_groups, states=state, kinds=type)
        ],
    )


@GROUP.command(
    "describe",
    argument("groups", "their names (default: all groups)", nargs="*"),
    example="millstream group describe billing",
)
def describe(client: SyncClient, *, groups: list[str]) -> Rows:
    """Show how far groups have read, partition by partition."""
    rows = [
        (
            group.id,
            position.topic,
            position.partition,
            position.committed,
            position.end,
            position.lag,
            None if position.member is None else position.member.id,
            None if position.member is None else position.member.client_id,
            None if position.member is None else position.member.host,
        )
        for group in _described(client, groups)
        for position in (client.run(group_positions, group) if group.is_of_consumers else ())
    ]
    columns = ("group", "topic", "partition", "offset", "end", "lag", "member", "client", "host")
    return Rows(columns, rows)


@GROUP.command(
    "members",
    argument("groups", "their names (default: all groups)", nargs="*"),
    example="millstream group members billing",
)
def members(client: SyncClient, *, groups: list[str]) -> Rows:
    """Show members and what they read; those that have nothing to read are idle."""
    rows = [
        (
            group.id,
            group.state,
            member.id,
            member.instance_id,
            member.client_id,
            member.host,
            _owned(member.assignment),
            not member.assignment,
        )
        for group in _described(client, groups)
        for member in group.members
    ]
    return Rows(("group", "state", "member", "instance", "client", "host", "partitions", "idle"), rows)


def _owned(places: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    return tuple(f"{topic}:{index}" for topic, index in sorted(places))


def _described(client: SyncClient, names: list[str]) -> list[GroupDescription]:
    """The groups named, or all: then one that disappears meanwhile is simply not there."""
    wanted = names or [group.id for group in client.run(list_groups)]
    found = client.run(describe_groups, wanted)
    if names:
        return list(raise_first(found).values())
    return [group for group in found.values() if not isinstance(group, Refusal)]


@GROUP.command(
    "reset-offsets",
    argument("group", "its name; the group must have no members at the moment"),
    option("--topic", repeat=True, metavar="TOPIC[:0,1]", help="a topic, or some of its partitions"),
    flag("--all-topics", help="all partitions that the group has offsets for"),
    flag("--to-earliest", help="to the oldest record"),
    flag("--to-latest", help="to the end"),
    flag("--to-current", help="where it stands; with --csv this shows how it stands"),
    option("--to-offset", type=int, metavar="OFFSET", help="to this offset"),
    option("--to-datetime", metavar="TIME", help="to a time: 2026-01-31T12:00:00Z, or milliseconds"),
    option("--by-duration", metavar="DURATION", help="so long ago: 10m, 2h, 7d or PT10M"),
    option("--shift-by", type=int, metavar="COUNT", help="so many records forward, or back if negative"),
    option("--from-file", metavar="FILE", help="to the offsets of a CSV file: topic,partition,offset"),
    flag("--csv", help="print the plan as CSV, for --from-file"),
    flag("--dry-run", help="only show what would be done (the default)"),
    flag("--execute", help="do it"),
    example="millstream group reset-offsets billing --topic orders --by-duration 2h --execute",
)
def reset_offsets(
    client: SyncClient,
    *,
    group: str,
    topic: list[str],
    all_topics: bool,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    shift_by: int | None,
    from_file: str | None,
    csv: bool,
    dry_run: bool,
    execute: bool,
) -> Rows | Lines:
    """Move a group's offsets; without --execute, only show where to."""
    if dry_run and execute:
        raise UsageError("--dry-run and --execute exclude each other")
    now_ms = client.client.ports.clock.wall_ms()
    targets: list[Target] = []
    targets += [ToTime(EARLIEST)] * to_earliest + [ToTime(LATEST)] * to_latest + [ToCurrent()] * to_current
    targets += [ToOffset(to_offset)] if to_offset is not None else []
    targets += [ShiftBy(shift_by)] if shift_by is not None else []
    targets += [at_time(parse_time_ms(to_datetime, now_ms))] if to_datetime is not None else []
    targets += [at_time(now_ms - parse_duration_ms(by_duration))] if by_duration is not None else []
    targets += [ToListed(read_offsets(from_file, [group]).get(group, {}))] if from_file is not None else []
    if len(targets) != 1:
        raise UsageError("exactly one of --to-..., --by-duration, --shift-by and --from-file says where to")
    (target,) = targets
    _check_inactive(client, group)
    if isinstance(target, ToListed):
        places = list(target.offsets)
    else:
        if all_topics == bool(topic):
            raise UsageError("either --topic or --all-topics says which partitions are meant")
        places = partitions_in(client, group, None if all_topics else parse_scope(topic))
    plan = make_plan(client, group, places, target)
    for note in plan.notes:
        say(note.sentence())
    if execute:
        carry_out(client, group, plan)
    if csv:
        return Lines(iter((write_offsets({group: plan.offsets}, with_group=False).encode(),)))
    return _planned(group, plan, executed=execute)


def _planned(group: str, plan: Plan, *, executed: bool) -> Rows:
    rows = [(group, topic, index, offset) for (topic, index), offset in plan.offsets.items()]
    note = "" if executed else "nothing was changed yet; --execute does it"
    return Rows(("group", "topic", "partition", "new_offset"), rows, note=note)


def _check_inactive(client: SyncClient, group: str) -> None:
    found = active_now(client, group)
    if found is not None:
        raise ClientError(
            f"group {group!r} has {len(found.members)} members and is {found.state}: its offsets can be moved "
            "once they have left"
        )


@GROUP.command(
    "delete",
    argument("groups", "their names", nargs="+"),
    example="millstream group delete billing",
)
def delete(client: SyncClient, *, groups: list[str]) -> Rows:
    """Delete groups that have no members, with their offsets."""
    raise_first(client.run(delete_groups, groups))
    return Rows(("deleted",), [(group,) for group in groups])
