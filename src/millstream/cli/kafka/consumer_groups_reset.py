"""`kafka-consumer-groups --reset-offsets`: a plan for each group, shown or carried out, as a table or as CSV."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from millstream.cli.declare import UsageError
from millstream.cli.group_csv import read_offsets, write_offsets
from millstream.cli.group_reset import (
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
from millstream.cli.kafka import consumer_groups_tables as tables
from millstream.cli.output import say
from millstream.cli.times import parse_duration_ms, parse_time_ms
from millstream.client.offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    import argparse

    from millstream.cli.group_reset import Note, Plan, Target
    from millstream.client.grouping import TopicPartition
    from millstream.client.sync import SyncClient

RESETS = (
    "to_datetime",
    "by_duration",
    "to_earliest",
    "to_latest",
    "shift_by",
    "from_file",
    "to_current",
    "to_offset",
)


def reset_offsets(client: SyncClient, parsed: argparse.Namespace) -> None:
    if not parsed.execute and not parsed.dry_run:
        say("WARN: nothing is changed without --execute; say --dry-run where that is what is meant")
    groups = list(dict.fromkeys(parsed.group))
    listed = {} if parsed.from_file is None else read_offsets(parsed.from_file, groups)
    target = None if parsed.from_file is not None else _target(client, parsed)
    plans: dict[str, dict[TopicPartition, int]] = {}
    for group in groups:
        if not _is_inactive(client, group):
            continue
        if target is None:
            plan = _listed_plan(client, group, listed)
        else:
            plan = make_plan(client, group, _places(client, group, parsed), target)
        for note in plan.notes:
            _tell(note)
        if parsed.execute:
            carry_out(client, group, plan)
        plans[group] = plan.offsets
    if parsed.export:
        # Kafka's tool ends the CSV with an empty line.
        sys.stdout.write(write_offsets(plans, with_group=len(parsed.group) != 1 or parsed.all_groups) + "\n")
    else:
        sys.stdout.write(tables.new_offsets(plans))


def _target(client: SyncClient, parsed: argparse.Namespace) -> Target:
    now_ms = client.client.ports.clock.wall_ms()
    if parsed.to_earliest:
        return ToTime(EARLIEST)
    if parsed.to_latest:
        return ToTime(LATEST)
    if parsed.to_offset is not None:
        return ToOffset(parsed.to_offset)
    if parsed.shift_by is not None:
        return ShiftBy(parsed.shift_by)
    if parsed.to_datetime is not None:
        return at_time(parse_time_ms(parsed.to_datetime, now_ms))
    if parsed.by_duration is not None:
        return at_time(now_ms - parse_duration_ms(parsed.by_duration))
    return ToCurrent()


def _is_inactive(client: SyncClient, group: str) -> bool:
    found = active_now(client, group)
    if found is None:
        return True
    sys.stdout.write(
        f"\nError: Assignments can only be reset if the group '{group}' is inactive, "
        f"but the current state is {found.state}.\n"
    )
    return False


def _places(client: SyncClient, group: str, parsed: argparse.Namespace) -> list[TopicPartition]:
    if parsed.all_topics:
        return partitions_in(client, group, None)
    if not parsed.topic:
        raise UsageError("--reset-offsets needs --topic or --all-topics")
    return partitions_in(client, group, parse_scope(parsed.topic))


def _listed_plan(client: SyncClient, group: str, listed: dict[str, dict[TopicPartition, int]]) -> Plan:
    offsets = listed.get(group, {})
    if not offsets:
        sys.stdout.write(f"\nError: No reset plan for group {group} found\n")
    return make_plan(client, group, list(offsets), ToListed(offsets))


def _tell(note: Note) -> None:
    topic, index = note.place
    if note.wanted is None:
        text = f"\nWarn: Partition {index} from topic {topic} is empty. Falling back to latest known offset.\n"
        sys.stdout.write(text)
    else:
        say(note.sentence())
