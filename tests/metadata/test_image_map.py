"""A SharedMap is a dictionary whose earlier versions stay what they were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.metadata.image_map import GONE, SharedMap

changes = st.dictionaries(st.integers(0, 80), st.none() | st.integers(), max_size=50)


@given(st.lists(st.tuples(changes, st.lists(st.integers(0, 80), unique=True)), max_size=12))
def test_every_version_equals_the_dictionary_it_stands_for(
    steps: list[tuple[dict[int, int | None], list[int]]],
) -> None:
    model: dict[int, int | None] = {}
    versions: list[tuple[SharedMap[int, int | None], dict[int, int | None]]] = [(SharedMap(), {})]
    for added, removed in steps:
        gone = {key: GONE for key in removed if key in model and key not in added}
        model = {key: value for key, value in {**model, **added}.items() if key not in gone}
        versions.append((versions[-1][0].with_changes({**added, **gone}), dict(model)))
    for shared, expected in versions:
        assert shared == expected
        assert len(shared) == len(expected)
        assert sorted(shared) == sorted(expected)
        assert all(key in shared and shared[key] == value for key, value in expected.items())
        assert all(shared.get(key, "none") == "none" for key in range(80) if key not in expected)


def test_one_change_in_a_large_map_copies_only_the_changes() -> None:
    before = SharedMap({number: number for number in range(10_000)})
    after = before.with_changes({5: -1, 10_001: 0})
    assert after._base is before._base
    assert len(after._changes) == 2


def test_changes_are_folded_in_before_they_make_look_ups_slow() -> None:
    shared: SharedMap[int, int] = SharedMap({number: number for number in range(10_000)})
    for number in range(300):
        shared = shared.with_changes({number: -number})
        assert len(shared._changes) <= 101


def test_no_change_gives_the_map_itself() -> None:
    shared = SharedMap({1: 2})
    assert shared.with_changes({}) is shared


def test_iteration_follows_insertion() -> None:
    shared = SharedMap({"b": 1, "a": 2}).with_changes({"c": 3}).with_changes({"a": 4})
    assert list(shared) == ["b", "a", "c"]
