"""`millstream consume`: records of a topic on standard output, all of them or as a member of a group."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from millstream.cli.declare import Group, UsageError, argument, flag, option
from millstream.cli.following import follow, limited, partitions_of, starting_offsets
from millstream.cli.output import Lines
from millstream.cli.record_format import compile_format, json_lines
from millstream.cli.times import parse_time_ms

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from millstream.cli.following import Part
    from millstream.cli.record_format import Formatter
    from millstream.client.sync import SyncClient

GROUP = Group("consume", "Read records.")
GROUPS = {"consume": GROUP}


@GROUP.command(
    "",
    argument("topic", "the topic to read"),
    flag("--from-beginning", help="all that is there, then what comes"),
    option("--offset", "-o", help="start at this offset, or -N for the last N of each partition, or beginning or end"),
    option("--since", "--time", metavar="TIME", help="start at a time: ms, 2026-01-31T12:00:00Z, or 10m"),
    option("--partition", "-p", type=int, repeat=True, help="only this partition"),
    option("--limit", "-n", type=int, help="stop after so many records"),
    flag("--exit", "-e", help="stop at the end of what is there now"),
    option("--timeout", type=float, metavar="SECONDS", help="stop when nothing has come for so long"),
    option("--format", "-f", default=r"%s\n", help=r"%%s value, %%k key, %%o offset, %%p %%t %%T %%h (default: %%s\n)"),
    option("--group", "-g", help="read as a member of this group, which remembers how far it has read"),
    flag("--read-committed", help="leave out records of aborted and open transactions"),
    example=r"millstream consume orders --from-beginning --exit --format '%p/%o %k=%s\n'",
)
def consume(
    client: SyncClient,
    *,
    topic: str,
    from_beginning: bool,
    offset: str | None,
    since: str | None,
    partition: list[int],
    limit: int | None,
    exit: bool,  # noqa: A002 - the option's name
    timeout: float | None,
    format: str,  # noqa: A002
    group: str | None,
    read_committed: bool,
    as_json: bool,
) -> Lines:
    """Print records of a topic as they come.

    Members of a group share the topic's partitions; a group that has never read the topic starts at its end, or with
    --from-beginning at its beginning.
    """
    if sum((from_beginning, offset is not None, since is not None)) > 1:
        raise UsageError("--from-beginning, --offset and --since exclude each other")
    render = json_lines if as_json else compile_format(format)
    places = partitions_of(client, topic, partition)
    idle_ms_max = None if timeout is None else int(timeout * 1000)
    if limit is not None and limit <= 0:
        return Lines(iter(()))
    if group is not None:
        if partition or offset is not None or since is not None:
            raise UsageError("with --group, the group says which partitions and from where")
        from millstream.cli.group_following import follow_in_group

        shown = follow_in_group(
            client,
            group,
            topic,
            from_beginning=from_beginning,
            read_committed=read_committed,
            until_end=exit,
            idle_ms_max=idle_ms_max,
            limit=limit,
        )
        return Lines(_rendered(shown, render))
    since_ms = None if since is None else parse_time_ms(since, client.client.ports.clock.wall_ms())
    start = "beginning" if from_beginning else offset or "end"
    offsets = starting_offsets(client, places, start, since_ms=since_ms)
    parts = follow(client, offsets, read_committed=read_committed, until_end=exit, idle_ms_max=idle_ms_max)
    return Lines(_rendered(limited(parts, limit), render))


def _rendered(parts: Generator[Part, None, None], render: Formatter) -> Iterator[bytes]:
    with closing(parts):
        for part in parts:
            yield render(part.topic, part.partition, part.batch)
