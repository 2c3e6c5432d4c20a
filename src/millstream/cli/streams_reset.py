"""Putting a streams application back to its beginning: what Kafka's StreamsResetter does, as a plan that can be shown.

An application leaves three things in a cluster: offsets of its group, whose name is the application id; internal
topics, whose names begin with it; and what it wrote to its users' topics, which is theirs and stays. So a reset moves
the offsets of its input topics, skips to the end of those between (it will write them again), and deletes the internal
ones. On this side there is a fourth: Spark's checkpoints; while they are there, nobody asks for the group's offsets.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.cli.declare import UsageError
from millstream.cli.group_csv import read_offsets
from millstream.cli.group_reset import (
    Plan,
    ShiftBy,
    ToListed,
    ToOffset,
    ToTime,
    active_now,
    at_time,
    carry_out,
    make_plan,
)
from millstream.cli.times import parse_duration_ms, parse_time_ms
from millstream.client.admin import raise_first
from millstream.client.admin.groups import remove_members
from millstream.client.admin.topics import delete_topics, list_topics
from millstream.client.errors import ClientError
from millstream.client.offsets import EARLIEST, LATEST
from millstream.client.streams_topics import is_internal
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from millstream.cli.group_reset import Target
    from millstream.client.admin.described_groups import GroupDescription
    from millstream.client.grouping import TopicPartition
    from millstream.client.metadata import Topic
    from millstream.client.sync import SyncClient

_SETTLING_S = 10.0
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked for. At most one of those from `to_offset` on says where to; else it is the beginning."""

    application_id: str
    input_topics: Sequence[str] = ()
    intermediate_topics: Sequence[str] = ()
    internal_topics: Sequence[str] = ()
    to_offset: int | None = None
    to_datetime: str | None = None
    by_duration: str | None = None
    to_earliest: bool = False
    to_latest: bool = False
    shift_by: int | None = None
    from_file: str | None = None

    def target(self, now_ms: int) -> Target:
        """Where the input topics go on."""
        targets: list[Target] = []
        targets += [ToTime(EARLIEST)] * self.to_earliest + [ToTime(LATEST)] * self.to_latest
        targets += [ToOffset(self.to_offset)] if self.to_offset is not None else []
        targets += [ShiftBy(self.shift_by)] if self.shift_by is not None else []
        targets += [at_time(parse_time_ms(self.to_datetime, now_ms))] if self.to_datetime is not None else []
        targets += [at_time(now_ms - parse_duration_ms(self.by_duration))] if self.by_duration is not None else []
        if self.from_file is not None:
            group = self.application_id
            targets.append(ToListed(read_offsets(self.from_file, [group]).get(group, {})))
        if len(targets) > 1:
            raise UsageError("only one of --to-..., --by-duration, --shift-by and --from-file can say where to")
        return targets[0] if targets else ToTime(EARLIEST)


@dataclass(frozen=True, slots=True)
class Reset:
    """What is to be done; nothing of it is done yet."""

    group: str
    inputs: Plan = field(default_factory=Plan)
    intermediates: Plan = field(default_factory=Plan)
    missing_inputs: list[str] = field(default_factory=list)
    missing_intermediates: list[str] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)


def topics_to_delete(wish: Wish, names: Collection[str]) -> list[str]:
    """Internal topics, or those of them that were named; never a topic that the user reads from."""
    read = {*wish.input_topics, *wish.intermediate_topics}
    found = sorted(name for name in names if name not in read and is_internal(wish.application_id, name))
    for name in wish.internal_topics:
        if name not in found:
            said = ", ".join(found) or "none"
            raise UsageError(f"{name!r} is no internal topic of {wish.application_id!r}; those are: {said}")
    return list(wish.internal_topics) or found


def plan_reset(client: SyncClient, wish: Wish) -> Reset:
    """Look at the cluster, and say what a reset would change."""
    target = wish.target(client.client.ports.clock.wall_ms())
    topics = {topic.name: topic for topic in client.run(list_topics)}
    group = wish.application_id
    inputs = _partitions(topics, wish.input_topics)
    if isinstance(target, ToListed):
        # A file may be about some partitions only: the others stay where they are.
        inputs = [place for place in inputs if place in target.offsets]
    between = _partitions(topics, wish.intermediate_topics)
    return Reset(
        group,
        make_plan(client, group, inputs, target),
        make_plan(client, group, between, ToTime(LATEST)),
        [name for name in wish.input_topics if name not in topics],
        [name for name in wish.intermediate_topics if name not in topics],
        topics_to_delete(wish, topics),
    )


def _partitions(topics: Mapping[str, Topic], names: Sequence[str]) -> list[TopicPartition]:
    return [(name, part.index) for name in names if name in topics for part in topics[name].partitions]


def move_offsets(client: SyncClient, reset: Reset) -> None:
    carry_out(client, reset.group, Plan(reset.inputs.offsets | reset.intermediates.offsets))


def delete_internal_topics(client: SyncClient, reset: Reset) -> None:
    if reset.deletes:
        raise_first(client.run(delete_topics, reset.deletes))


def active_group(client: SyncClient, group: str) -> GroupDescription | None:
    """The group if somebody is in it: offsets can only be moved when all have left.

    Where the last one left before the coordinator had let it in, the group waits for others a moment longer
    (group.initial.rebalance.delay.ms). Nobody is there then, so that is waited for.
    """
    deadline = time.monotonic() + _SETTLING_S
    while True:
        found = active_now(client, group)
        if found is None or found.members or time.monotonic() >= deadline:
            return found
        time.sleep(_LOOK_S)


def remove_all(client: SyncClient, group: GroupDescription) -> None:
    """Put members out that do not leave by themselves, such as those of a process that is gone."""
    outcomes = client.run(remove_members, group.id, [(member.id, member.instance_id) for member in group.members])
    for refusal in outcomes.values():
        # One that has left meanwhile is what was wanted.
        if refusal is not None and refusal.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            raise refusal


def checkpoints_in(folder: str) -> list[str]:
    """The directories to delete for a checkpoint location: itself, if there is nothing in it but Spark's checkpoints.

    It is a person who names the folder, and everything in it will be gone: so it must look the part.
    """
    path = folder.removeprefix("file://")
    if "://" in path:
        raise UsageError(f"{folder} is not on this machine: delete it where it is")
    if not os.path.isdir(path):
        return []
    parts = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    if not parts or _is_checkpoint(path) or all(_is_checkpoint(part) for part in parts):
        return [path]
    raise UsageError(f"{folder} holds other things than Spark's checkpoints: it is left as it is")


def _is_checkpoint(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "metadata")) and os.path.isdir(os.path.join(path, "offsets"))


def delete_checkpoints(folders: Sequence[str]) -> None:
    for folder in folders:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise ClientError(f"{error.filename} could not be deleted: {(error.strerror or '').lower()}") from error
