"""`kafka-streams-application-reset`: the options and the lines of Kafka's tool.

As there, topics that do not exist are skipped and told of, with exit code 1; the rest is done. Local state is Spark's
checkpoints here, which Kafka's tool knows nothing of: `millstream streams reset --checkpoint` deletes them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from millstream.cli.connect import DEFAULT_SERVERS, open_client
from millstream.cli.declare import UsageError
from millstream.cli.kafka.arguments import ToolParser, client_options_of
from millstream.cli.output import say
from millstream.cli.streams import listed
from millstream.cli.streams_reset import (
    Wish,
    active_group,
    delete_internal_topics,
    move_offsets,
    plan_reset,
    remove_all,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.cli.group_reset import Note
    from millstream.cli.streams_reset import Reset
    from millstream.client.sync import SyncClient


def run(words: Sequence[str]) -> int:
    parsed = _parser().read(words)
    if parsed.application_id is None:
        raise UsageError("--application-id is missing: the application's application.id")
    if parsed.bootstrap_server is None and parsed.command_config is None:
        parsed.bootstrap_server = DEFAULT_SERVERS
    wish = Wish(
        parsed.application_id,
        listed(parsed.input_topics),
        listed(parsed.intermediate_topics),
        listed(parsed.internal_topics),
        to_offset=parsed.to_offset,
        to_datetime=parsed.to_datetime,
        by_duration=parsed.by_duration,
        to_earliest=parsed.to_earliest,
        to_latest=parsed.to_latest,
        shift_by=parsed.shift_by,
        from_file=parsed.from_file,
    )
    if wish.intermediate_topics:
        _say("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
    with open_client(client_options_of(parsed)) as client:
        return _reset(client, wish, dry_run=parsed.dry_run, force=parsed.force)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-streams-application-reset", "Let a streams application begin again.")
    parser.connection("--config-file")
    parser.add_argument("--application-id", metavar="ID", help="the application; it must not be running")
    parser.multiple("--input-topics", metavar="TOPIC,...", help="topics that it reads: to the oldest record")
    parser.multiple("--intermediate-topics", metavar="TOPIC,...", help="topics that it writes and reads: to the end")
    parser.multiple("--internal-topics", metavar="TOPIC,...", help="delete only these internal topics")
    parser.add_argument("--to-offset", type=int, help="input topics to this offset")
    parser.add_argument("--to-datetime", metavar="TIME", help="to a time: YYYY-MM-DDThh:mm:ss.sss, UTC")
    parser.add_argument("--by-duration", metavar="DURATION", help="so long ago: PnDTnHnMnS")
    parser.flag("--to-earliest", help="to the oldest record (the default)")
    parser.flag("--to-latest", help="to the end")
    parser.add_argument("--from-file", metavar="FILE", help="to the offsets of a CSV file")
    parser.add_argument("--shift-by", type=int, metavar="COUNT", help="so many records forward, or back")
    parser.flag("--force", help="put members of the group out that have not left")
    parser.flag("--dry-run", help="only show what would be done")
    return parser


def _reset(client: SyncClient, wish: Wish, *, dry_run: bool, force: bool) -> int:
    running = active_group(client, wish.application_id)
    if running is not None:
        if not force:
            members = ", ".join(member.id for member in running.members)
            say(
                f"ERROR: consumer group '{running.id}' is still active and has these members: {members}. Stop all "
                "instances of the application first; '--force' puts out those that did not leave."
            )
            return 1
        _say(f"Force deleting all active members in the group: {running.id}")
        if not dry_run:
            remove_all(client, running)
    if dry_run:
        _say("----Dry run displays the actions which will be performed when running Streams Reset Tool----")
    plan = plan_reset(client, wish)
    code = _move(client, wish, plan, dry_run=dry_run)
    what = "specified" if wish.internal_topics else "inferred"
    _say(f"Deleting {what} internal topics [{', '.join(plan.deletes)}]")
    if not dry_run:
        delete_internal_topics(client, plan)
    _say("Done.")
    return code


def _move(client: SyncClient, wish: Wish, plan: Reset, *, dry_run: bool) -> int:
    if not wish.input_topics and not wish.intermediate_topics:
        _say("No input or intermediate topics specified. Skipping seek.")
        return 0
    if wish.input_topics:
        _say(f"Reset-offsets for input topics [{', '.join(wish.input_topics)}]")
    if wish.intermediate_topics:
        _say(f"Seek-to-end for intermediate topics [{', '.join(wish.intermediate_topics)}]")
    _tell_missing("input", plan.missing_inputs)
    _tell_missing("intermediate", plan.missing_intermediates)
    code = int(bool(plan.missing_inputs or plan.missing_intermediates))
    if not plan.inputs.offsets and not plan.intermediates.offsets:
        return code
    _tell_offsets(plan)
    if not dry_run:
        move_offsets(client, plan)
    _say("Done.")
    return code


def _tell_missing(kind: str, names: list[str]) -> None:
    if names:
        _say(f"Following {kind} topics are not found, skipping them")
        for name in names:
            _say(f"Topic: {name}")


def _tell_offsets(plan: Reset) -> None:
    if plan.inputs.offsets:
        _say(f"Following input topics offsets will be reset to (for consumer group {plan.group})")
        for note in plan.inputs.notes:
            _say(_adapted(note))
        for (topic, index), offset in plan.inputs.offsets.items():
            _say(f"Topic: {topic} Partition: {index} Offset: {offset}")
    if plan.intermediates.offsets:
        _say(f"Following intermediate topics offsets will be reset to end (for consumer group {plan.group})")
        for topic, _ in plan.intermediates.offsets:
            _say(f"Topic: {topic}")


def _adapted(note: Note) -> str:
    topic, index = note.place
    if note.wanted is None:
        return (
            f"Partition {index} from topic {topic} is empty, without a committed record. "
            "Falling back to latest known offset."
        )
    side = "lower than earliest" if note.wanted < note.used else "higher than latest"
    return f"New offset ({note.wanted}) is {side} offset. Value will be set to {note.used}"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
