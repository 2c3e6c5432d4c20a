"""What is new since the last batch, and what of it the next one takes.

A query stands somewhere in each partition it knew; the cluster has changed since. New partitions, and topics that have
come to match, are read from their beginning. Whatever is missing is a loss, and `failOnDataLoss` decides: a partition
that is gone, a topic that was made again under its name, a log that ends before where the query stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.client.errors import Refusal, partition_subject
from millstream.protocol.errors import ErrorCode
from millstream.spark.loss import recreated, report_loss
from millstream.spark.offsets import Offsets
from millstream.spark.planning import earliest_of, find_present, find_starts, latest_of
from millstream.spark.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.spark.options import ReadOptions


async def first_offsets(client: Client, options: ReadOptions) -> Offsets:
    """Where a new query begins."""
    present = await find_present(client, options.selection)
    return Offsets(await find_starts(client, present, options), present.ids, initial=True)


async def latest_offsets(client: Client, options: ReadOptions) -> Offsets:
    """Where all that there is ends; what is missing is judged by `new_since`."""
    present = await find_present(client, options.selection, missing_is_fine=True)
    return Offsets(await latest_of(client, present.places, read_committed=options.read_committed), present.ids)


async def new_since(client: Client, start: Offsets, latest: Offsets, options: ReadOptions) -> tuple[Offsets, Offsets]:
    """(begin, end) of what can be read now, for the same partitions."""
    begin = dict(start.places)
    for topic in _recreated(start, latest, options):
        begin = {place: offset for place, offset in begin.items() if place[0] != topic}
    for place in [place for place in begin if place not in latest.places]:
        # Somebody may have changed the options rather than the cluster.
        why = "is not there" if options.selection.includes(place) else "is not among what the options say to read"
        report_loss(
            f"{partition_subject(*place)} {why} any more; the query has read it up to offset {begin[place]}",
            fail=options.fail_on_data_loss,
            instead="the others are read on",
        )
        del begin[place]
    fresh = [place for place in latest.places if place not in begin]
    begin |= await _beginnings(client, fresh, options)
    end = dict(latest.places)
    for place, offset in begin.items():
        if end[place] >= offset:
            continue
        if start.initial:
            # It was the latest offset a moment after this end was looked up.
            end[place] = offset
            continue
        report_loss(
            f"{partition_subject(*place)} ends at offset {end[place]}, but the query has read it up to {offset}",
            fail=options.fail_on_data_loss,
            instead=f"it is read on from {end[place]}",
        )
    return Offsets(begin, latest.ids, initial=start.initial), Offsets(end, latest.ids)


async def plan_between(client: Client, start: Offsets, end: Offsets, options: ReadOptions) -> list[Range]:
    """The ranges of a batch, which may be one that is run again after a restart."""
    if end.begin is not None:
        start = end.begin
    same = {topic for topic, known in end.ids.items() if start.ids.get(topic, known) == known}
    earliest = await _still_there(client, end, options) if end.places else {}
    ranges = []
    for place, until in end.places.items():
        if place not in earliest:
            continue
        # One that came later is read from its first record: what expired before it was planned for is lost, too.
        begin = start.places.get(place, 0) if place[0] in same else earliest[place]
        if begin < earliest[place] and begin < until:
            report_loss(
                f"{partition_subject(*place)} should be read on from offset {begin}, but it begins at "
                f"{earliest[place]}: what lay between has expired",
                fail=options.fail_if_expired,
                instead=f"it is read on from {earliest[place]}",
            )
            begin = earliest[place]
        ranges.append(Range(place[0], end.ids.get(place[0], ""), place[1], begin, until))
    return ranges


async def _still_there(client: Client, end: Offsets, options: ReadOptions) -> dict[TopicPartition, int]:
    """Where the partitions begin that a batch was planned for; those that were deleted since then are a loss."""
    try:
        return await earliest_of(client, end.places)
    except Refusal as refusal:
        if refusal.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
    present = await find_present(client, options.selection, missing_is_fine=True)
    for place, until in end.places.items():
        if place not in present.places:
            report_loss(
                f"{partition_subject(*place)} is not there any more; it should be read up to offset {until}",
                fail=options.fail_on_data_loss,
                instead="the others are read on",
            )
    return await earliest_of(client, [place for place in end.places if place in present.places])


def limited(
    begin: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int
) -> dict[TopicPartition, int]:
    """An end that is about `most` offsets away, each partition having its share and at least one, as in Spark."""
    sizes = {place: max(0, offset - begin[place]) for place, offset in end.items()}
    total = sum(sizes.values())
    if total <= most:
        return dict(end)
    return {
        place: begin[place] + min(size, max(1, most * size // total)) if size else end[place]
        for place, size in sizes.items()
    }


def _recreated(start: Offsets, latest: Offsets, options: ReadOptions) -> list[str]:
    """The topics that are not the ones that the query has read."""
    found = []
    for topic, known in start.ids.items():
        now = latest.ids.get(topic, known)
        if now != known:
            report_loss(
                recreated(topic, known, now),
                fail=options.fail_on_data_loss,
                instead="the new one is read from its beginning",
            )
            found.append(topic)
    return found


async def _beginnings(client: Client, places: list[TopicPartition], options: ReadOptions) -> dict[TopicPartition, int]:
    """Where partitions begin that the query did not know."""
    if not places:
        return {}
    earliest = await earliest_of(client, places)
    for place, offset in earliest.items():
        if offset > 0:
            report_loss(
                f"{partition_subject(*place)} is new to the query and begins at offset {offset}: what lay before has "
                "expired unread",
                fail=options.fail_if_expired,
                instead="it is read from there",
            )
    return earliest
