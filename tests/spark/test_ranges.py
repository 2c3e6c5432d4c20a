"""Offsets: their JSON, how a batch is limited, and how ranges become tasks."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from millstream.spark.following import limited
from millstream.spark.offsets import Offsets
from millstream.spark.ranges import Range, tasks_of

topics = st.text("abc.-_1", min_size=1, max_size=5)
places = st.dictionaries(st.tuples(topics, st.integers(0, 99)), st.integers(0, 1 << 60), max_size=6)
offsets = st.builds(Offsets, places, st.dictionaries(topics, st.text(max_size=3), max_size=3), st.booleans())


@given(offsets, st.none() | offsets)
def test_offsets_survive_the_checkpoint_and_look_the_same_each_time(end: Offsets, begin: Offsets | None) -> None:
    whole = Offsets(end.places, end.ids, end.initial, begin)
    text = json.dumps(whole.to_json())
    again = Offsets.from_json(json.loads(text))
    assert again == whole
    assert json.dumps(again.to_json()) == text


def test_without_what_is_known_besides_they_are_sparks() -> None:
    assert Offsets({("b", 1): 4, ("b", 0): 3, ("a", 0): 9}).to_json() == {"a": {"0": 9}, "b": {"0": 3, "1": 4}}


sizes = st.lists(st.integers(0, 1000), min_size=1, max_size=8)


def ranges_of(found: list[int]) -> list[Range]:
    return [Range("t", "id", index, 10 * index, 10 * index + size) for index, size in enumerate(found)]


@given(sizes, st.none() | st.integers(1, 40), st.none() | st.integers(1, 300))
def test_tasks_cover_every_offset_once_and_keep_to_what_was_asked(
    found: list[int], at_least: int | None, records_max: int | None
) -> None:
    tasks = tasks_of(ranges_of(found), at_least=at_least, records_max=records_max)
    covered = [(task.partition, offset) for task in tasks for offset in range(task.start, task.end)]
    assert covered == [(each.partition, offset) for each in ranges_of(found) for offset in range(each.start, each.end)]
    assert all(task.size > 0 for task in tasks)
    if records_max is not None:
        assert all(task.size <= records_max for task in tasks)
    if at_least is not None:
        assert len(tasks) >= min(at_least, sum(found))


@given(sizes, st.integers(1, 2000))
def test_a_limit_gives_every_partition_its_share(found: list[int], most: int) -> None:
    begin = {("t", each.partition): each.start for each in ranges_of(found)}
    end = {("t", each.partition): each.end for each in ranges_of(found)}
    chosen = limited(begin, end, most)
    taken = {place: chosen[place] - begin[place] for place in begin}
    assert chosen.keys() == end.keys()
    assert all(0 <= taken[place] <= end[place] - begin[place] for place in begin)
    assert all(taken[place] > 0 for place in begin if end[place] > begin[place])
    assert sum(taken.values()) <= most + len(found)
