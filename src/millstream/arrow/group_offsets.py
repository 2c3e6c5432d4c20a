"""A consumer group's offsets, for readers that are no members of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.client.groups import Committed, commit_offsets, committed_offsets
from millstream.client.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.grouping import TopicPartition


def committed(options: str | Mapping[str, str], group: str) -> dict[TopicPartition, int]:
    """Where the group goes on reading; `start=Group(name)` starts there."""
    with SyncClient({"bootstrap.servers": options} if isinstance(options, str) else options) as client:
        return {place: found.offset for place, found in client.run(committed_offsets, group).items()}


def commit(
    options: str | Mapping[str, str], group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = ""
) -> None:
    """Store where the group goes on, `stream.offsets` for instance; refused while the group has members."""
    with SyncClient({"bootstrap.servers": options} if isinstance(options, str) else options) as client:
        stored = {place: Committed(offset, metadata) for place, offset in offsets.items()}
        client.run(commit_offsets, group, stored)
