"""Stores with a changelog, shared by workers: each puts back what the others have put."""

from __future__ import annotations

from millstream.streams import STRING_SERDE as TEXT
from millstream.streams.lower.tasks.stores import LoggedWindows
from millstream.streams.plan.stores import WindowStore


def joined() -> LoggedWindows:
    return LoggedWindows(WindowStore("s", TEXT, TEXT, size_ms=10, retention_ms=100, timestamped=False, duplicates=True))


def taken_over(source: LoggedWindows, *others: LoggedWindows) -> None:
    """What a worker has put, as its changelog brings it to all."""
    for change in list(source.changes()):
        for store in (source, *others):
            store.put_back(change.key, change.value, change.timestamp_ms)
    for store in (source, *others):
        store.caught_up()


def held(store: LoggedWindows) -> list[str]:
    return [value for _, value in store.fetch("k", 0, 1_000)]


def test_a_worker_that_finds_no_number_in_the_changelog_hides_nothing() -> None:
    """All of it has expired, so the new worker counts from the start; the old one has come far."""
    old = joined()
    for number in range(5):
        old.put("k", f"old {number}", 1)
    taken_over(old)
    new = joined()
    new.put("k", "new", 60)
    taken_over(new, old)
    assert held(new) == ["new"]
    assert held(old) == [f"old {number}" for number in range(5)] + ["new"]


def test_what_a_worker_has_put_itself_is_not_put_twice() -> None:
    one, other = joined(), joined()
    for number in range(3):
        one.put("k", f"a{number}", 1)
        taken_over(one, other)
        other.put("k", f"b{number}", 1)
        taken_over(other, one)
    assert held(one) == held(other) == ["a0", "b0", "a1", "b1", "a2", "b2"]
