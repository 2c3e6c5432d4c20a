"""`millstream streams`: what an application is made of, and back to its beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.cli.declare import Group, UsageError, argument, flag, option
from millstream.cli.output import Lines, Rows, say
from millstream.cli.streams_reset import (
    Wish,
    active_group,
    checkpoints_in,
    delete_checkpoints,
    delete_internal_topics,
    move_offsets,
    plan_reset,
    remove_all,
)
from millstream.cli.topologies import load_topology
from millstream.client.errors import ClientError

if TYPE_CHECKING:
    from millstream.cli.streams_reset import Reset
    from millstream.client.sync import SyncClient

GROUP = Group("streams", "Streams applications: describe and reset.")
GROUPS = {"streams": GROUP}


@GROUP.command(
    "describe",
    argument("application", "a file or a module, with :name if the topology is not called topology"),
    option("--application-id", metavar="ID", help="show internal topics under their full names"),
    flag("--mermaid", help="a drawing: a Mermaid flowchart"),
    flag("--plan", help="the plan: one line for each operator, with its types"),
    flag("--topics", help="the internal topics, with their settings; needs --application-id"),
    flag("--json", help="print JSON, with --topics"),
    offline=True,
    example="millstream streams describe examples/streams_word_count.py --mermaid",
)
def describe(*, application: str, application_id: str | None, mermaid: bool, plan: bool, topics: bool) -> Rows | Lines:
    """Show what an application does, as Kafka Streams describes it."""
    if mermaid + plan + topics > 1:
        raise UsageError("only one of --mermaid, --plan and --topics can be shown")
    topology = load_topology(application)
    if topics:
        if application_id is None:
            raise UsageError("--topics needs --application-id, which their names begin with")
        rows = [
            (each.name, each.cleanup_policy, each.partitions, each.retention_ms)
            for each in topology.internal_topics(application_id)
        ]
        return Rows(("topic", "cleanup_policy", "partitions", "retention_ms"), rows)
    if mermaid:
        text = topology.mermaid()
    elif plan:
        text = f"{topology.plan}\n"
    else:
        text = topology.describe(application_id)
    return Lines(iter((text.encode(),)))


@GROUP.command(
    "reset",
    option("--application-id", metavar="ID", required=True, help="the application; it must not be running"),
    option("--input-topics", repeat=True, metavar="TOPIC,...", help="topics that it reads: read them again"),
    option("--intermediate-topics", repeat=True, metavar="TOPIC,...", help="topics that it writes and reads: skip"),
    option("--internal-topics", repeat=True, metavar="TOPIC,...", help="delete only these internal topics"),
    flag("--to-earliest", help="input topics from the oldest record (the default)"),
    flag("--to-latest", help="from the end"),
    option("--to-offset", type=int, metavar="OFFSET", help="from this offset"),
    option("--to-datetime", metavar="TIME", help="from a time: 2026-01-31T12:00:00Z, or milliseconds"),
    option("--by-duration", metavar="DURATION", help="from so long ago: 10m, 2h, 7d or PT10M"),
    option("--shift-by", type=int, metavar="COUNT", help="so many records forward, or back if negative"),
    option("--from-file", metavar="FILE", help="from the offsets of a CSV file: topic,partition,offset"),
    option("--checkpoint", metavar="DIR", help="delete Spark's checkpoints of the application, which are there"),
    flag("--force", help="put members of the group out that have not left"),
    flag("--dry-run", help="only show what would be done"),
    example="millstream streams reset --application-id shop --input-topics orders,payments --dry-run",
)
def reset(
    client: SyncClient,
    *,
    application_id: str,
    input_topics: list[str],
    intermediate_topics: list[str],
    internal_topics: list[str],
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    shift_by: int | None,
    from_file: str | None,
    checkpoint: str | None,
    force: bool,
    dry_run: bool,
) -> Rows:
    """Let an application begin again: move its offsets, delete its internal topics and its checkpoints.

    Topics that it has written to are left as they are.
    """
    wish = Wish(
        application_id,
        listed(input_topics),
        listed(intermediate_topics),
        listed(internal_topics),
        to_offset=to_offset,
        to_datetime=to_datetime,
        by_duration=by_duration,
        to_earliest=to_earliest,
        to_latest=to_latest,
        shift_by=shift_by,
        from_file=from_file,
    )
    folders = [] if checkpoint is None else checkpoints_in(checkpoint)
    running = active_group(client, application_id)
    if running is not None and not force:
        raise ClientError(
            f"application {application_id!r} has {len(running.members)} members and is {running.state}: stop all of "
            "it first; --force puts out those that did not leave"
        )
    plan = plan_reset(client, wish)
    if missing := [*plan.missing_inputs, *plan.missing_intermediates]:
        raise UsageError(f"there is no topic {', '.join(map(repr, missing))}: nothing was changed")
    for note in plan.inputs.notes:
        say(note.sentence())
    if not dry_run:
        if running is not None:
            remove_all(client, running)
        move_offsets(client, plan)
        delete_internal_topics(client, plan)
        delete_checkpoints(folders)
    return _said(plan, folders, done=not dry_run)


def listed(texts: list[str]) -> list[str]:
    """`a,b` and `c` are three topics, each once."""
    names = [name.strip() for text in texts for name in text.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def _said(plan: Reset, folders: list[str], *, done: bool) -> Rows:
    rows: list[tuple[str, str, int | None, int | None]] = []
    for offsets in (plan.inputs.offsets, plan.intermediates.offsets):
        rows += [("read from", topic, index, offset) for (topic, index), offset in offsets.items()]
    rows += [("delete topic", topic, None, None) for topic in plan.deletes]
    rows += [("delete directory", folder, None, None) for folder in folders]
    note = "" if done else "nothing was changed yet; without --dry-run it is done"
    if not rows:
        note = "there is nothing to reset: no topics were named, and none are internal to it"
    return Rows(("action", "what", "partition", "offset"), rows, note=note)
