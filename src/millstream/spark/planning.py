"""From options to offsets: which partitions there are now, and where in them reading starts and ends.

Everything here asks the cluster and runs on the driver, once per batch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from millstream.client.errors import BadOption, Refusal, partition_subject
from millstream.client.offsets import EARLIEST, LATEST, list_offsets
from millstream.protocol.errors import ErrorCode
from millstream.spark.loss import recreated, report_loss

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.metadata import Topic
    from millstream.spark.options import Bound, ReadOptions, Selection

_MISSING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


@dataclass(frozen=True)
class Present:
    """The partitions to read that exist now, and the ids of their topics."""

    places: list[TopicPartition]
    ids: dict[str, str]


async def find_present(client: Client, selection: Selection, *, missing_is_fine: bool = False) -> Present:
    """Asked anew each time, so that new partitions and topics are found at once."""
    topics = await client.retrying(lambda: _topics(client, selection, missing_is_fine=missing_is_fine), final=_MISSING)
    ids = {topic.name: str(topic.id) for topic in topics}
    if not selection.partitions:
        return Present([(topic.name, each.index) for topic in topics for each in topic.partitions], ids)
    counts = {topic.name: len(topic.partitions) for topic in topics}
    places = []
    for place in selection.partitions:
        if place[1] < counts.get(place[0], 0):
            places.append(place)
        elif not missing_is_fine:
            said = f"there is no such partition, the topic has {counts[place[0]]}"
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, said, subject=partition_subject(*place))
    return Present(places, ids)


async def _topics(client: Client, selection: Selection, *, missing_is_fine: bool) -> list[Topic]:
    if selection.pattern is not None:
        # As consumers do: internal topics are read only by those who name them.
        pattern = re.compile(selection.pattern)
        found = await client.metadata.all_topics()
        return [topic for topic in found if not topic.internal and pattern.fullmatch(topic.name)]
    names = selection.names or tuple(dict.fromkeys(name for name, _ in selection.partitions))
    for name in names:
        client.metadata.forget(name)
    topics = []
    for each in (await client.metadata.topics(names)).values():
        if not isinstance(each, Refusal):
            topics.append(each)
        elif not (missing_is_fine and each.code in _MISSING):
            raise each
    return topics


async def earliest_of(client: Client, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    found = await list_offsets(client, dict.fromkeys(places, EARLIEST))
    return {place: each.offset for place, each in found.items()}


async def latest_of(
    client: Client, places: Iterable[TopicPartition], *, read_committed: bool
) -> dict[TopicPartition, int]:
    """Where readers come to today: the high watermark, or the last stable offset."""
    found = await list_offsets(client, dict.fromkeys(places, LATEST), read_committed=read_committed)
    return {place: each.offset for place, each in found.items()}


async def find_starts(client: Client, present: Present, options: ReadOptions) -> dict[TopicPartition, int]:
    """Where a batch read, or a new query, begins; within what the partitions hold."""
    starts = await _offsets_at(client, present, options.start, options, too_young_is_error=True)
    if options.start.offsets is None:
        return starts
    _check_ids(present, options)
    earliest = await earliest_of(client, present.places)
    latest = await latest_of(client, present.places, read_committed=options.read_committed)
    for place, offset in starts.items():
        kept = min(max(offset, earliest[place]), latest[place])
        if kept != offset:
            said = f"offsets {earliest[place]} to {latest[place]}"
            report_loss(
                f"{partition_subject(*place)} should be read from offset {offset}, but it holds {said}",
                fail=options.fail_if_expired if offset < earliest[place] else options.fail_on_data_loss,
                instead=f"reading starts at {kept}",
            )
            starts[place] = kept
    return starts


async def find_ends(client: Client, present: Present, options: ReadOptions) -> dict[TopicPartition, int]:
    """Where a batch read ends."""
    ends = await _offsets_at(client, present, options.end, options, too_young_is_error=False)
    if options.end.offsets is None:
        return ends
    latest = await latest_of(client, present.places, read_committed=options.read_committed)
    for place, offset in ends.items():
        if offset > latest[place]:
            report_loss(
                f"{partition_subject(*place)} should be read up to offset {offset}, but it ends at {latest[place]}",
                fail=options.fail_on_data_loss,
                instead="reading ends there",
            )
            ends[place] = latest[place]
    return ends


async def refuse_backwards(
    client: Client, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], options: ReadOptions
) -> None:
    """Nothing lies between a start and an end before it: somebody has mixed them up, or all of it has expired."""
    backwards = [place for place, start in starts.items() if start > ends[place]]
    earliest = await earliest_of(client, backwards) if backwards else {}
    for place in backwards:
        where, end = partition_subject(*place), ends[place]
        if earliest[place] <= end:
            raise BadOption(
                f"{where} would be read from offset {starts[place]} ({options.start.option}) to {end} "
                f"({options.end.option}): it would end before it starts"
            )
        report_loss(
            f"{where} should be read up to offset {end}, but it begins at {earliest[place]}",
            fail=options.fail_if_expired,
            instead="nothing of it is read",
        )


def _check_ids(present: Present, options: ReadOptions) -> None:
    """Offsets that were copied from a checkpoint know which topic they are for."""
    assert options.start.offsets is not None
    for topic, known in options.start.offsets.ids.items():
        if present.ids.get(topic, known) != known:
            report_loss(
                recreated(topic, known, present.ids[topic]),
                fail=options.fail_on_data_loss,
                instead="the offsets are taken for the new one",
            )


async def _offsets_at(
    client: Client, present: Present, bound: Bound, options: ReadOptions, *, too_young_is_error: bool
) -> dict[TopicPartition, int]:
    if bound.everywhere is not None:
        asked = dict.fromkeys(present.places, bound.everywhere)
    elif bound.timestamp_ms is not None:
        asked = dict.fromkeys(present.places, bound.timestamp_ms)
    elif bound.timestamps_ms is not None:
        for_all = bound.option.replace("OffsetsByTimestamp", "Timestamp")
        asked = _for_all(present, bound.timestamps_ms, bound.option, f"{for_all} is one for all")
    else:
        assert bound.offsets is not None
        given = _for_all(present, bound.offsets.places, bound.option, "-2 is earliest, -1 latest")
        special = {place: offset for place, offset in given.items() if offset < 0}
        found = await list_offsets(client, special, read_committed=options.read_committed) if special else {}
        return {place: found[place].offset if place in found else offset for place, offset in given.items()}
    offsets = {
        place: each.offset
        for place, each in (await list_offsets(client, asked, read_committed=options.read_committed)).items()
    }
    too_young = [place for place, offset in offsets.items() if offset < 0]
    if too_young and too_young_is_error and not options.latest_if_too_young:
        raise BadOption(
            f"{partition_subject(*too_young[0])} has no record at or after {asked[too_young[0]]} ({bound.option}); "
            "startingOffsetsByTimestampStrategy=latest would begin at its end"
        )
    if too_young:
        offsets |= await latest_of(client, too_young, read_committed=options.read_committed)
    return offsets


def _for_all(
    present: Present, given: Mapping[TopicPartition, int], option: str, hint: str
) -> dict[TopicPartition, int]:
    """A partition without a place, or a place without a partition, is most likely a mistake, as Spark finds too."""
    missing = [place for place in present.places if place not in given]
    if missing:
        raise BadOption(f"{option} says nothing about {partition_subject(*missing[0])}; {hint}")
    beyond = [place for place in given if place not in present.places]
    if beyond:
        raise BadOption(f"{option} speaks of {partition_subject(*beyond[0])}, which is not among what is read")
    return {place: given[place] for place in present.places}
