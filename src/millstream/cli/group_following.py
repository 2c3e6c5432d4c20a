"""Reading as a member of a group for a command: batches as they come, committed once they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.cli.following import WAIT_MS, Part
from millstream.cli.output import reader_is_gone
from millstream.client.group_member import GroupMember
from millstream.client.group_reader import GroupReader
from millstream.client.offsets import EARLIEST, LATEST
from millstream.client.reading import batches_from, next_offset

if TYPE_CHECKING:
    from collections.abc import Generator

    from millstream.client.client import Client
    from millstream.client.sync import SyncClient
    from millstream.client.tail import Arrived


def follow_in_group(
    client: SyncClient,
    group: str,
    topic: str,
    *,
    from_beginning: bool = False,
    read_committed: bool = False,
    until_end: bool = False,
    idle_ms_max: int | None = None,
    limit: int | None = None,
) -> Generator[Part, None, None]:
    """Batches of the partitions that this member is given.

    A batch counts as shown when the next one is asked for; with a limit, exactly the records that were shown count.
    """
    reader = client.run(_open, group, topic, EARLIEST if from_beginning else LATEST, until_end, read_committed)
    left = limit
    idle_ms = 0
    wait_ms = WAIT_MS if idle_ms_max is None else min(WAIT_MS, idle_ms_max)
    try:
        while left is None or left > 0:
            arrived = client.run(_next, reader, wait_ms)
            if not arrived:
                idle_ms += wait_ms
                if reader_is_gone():
                    raise BrokenPipeError
                if reader.finished or (idle_ms_max is not None and idle_ms >= idle_ms_max):
                    return
                continue
            idle_ms = 0
            for answer in arrived:
                left = yield from _shown(reader, answer, left, read_committed=read_committed)
                if left is not None and left <= 0:
                    return
    finally:
        client.run(_close, reader)


def _shown(
    reader: GroupReader, answer: Arrived, left: int | None, *, read_committed: bool
) -> Generator[Part, None, int | None]:
    """How many more records may be shown."""
    fetched = answer.fetched
    place = (fetched.topic, fetched.partition)
    for batch in batches_from(fetched, answer.offset, read_committed=read_committed):
        records = batch.records if left is None else batch.records[:left]
        yield Part(*place, batch._replace(records=records))
        if records:
            reader.passed(place, records[-1].offset + 1)
        if left is not None:
            left -= len(records)
            if left <= 0:
                return left
    # Markers and aborted records at the end are not shown, but read past.
    reader.passed(place, next_offset(fetched, answer.offset))
    return left


async def _open(
    client: Client,
    group: str,
    topic: str,
    start: int,
    until_end: bool,  # noqa: FBT001 - called by place, through the client's thread
    read_committed: bool,  # noqa: FBT001
) -> GroupReader:
    member = GroupMember(client, group, [topic])
    return GroupReader(client, member, start=start, until_end=until_end, read_committed=read_committed)


async def _next(_: Client, reader: GroupReader, timeout_ms: int) -> list[Arrived]:
    return await reader.next(timeout_ms)


async def _close(_: Client, reader: GroupReader) -> None:
    await reader.close()
