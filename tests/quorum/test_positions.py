"""Where two logs agree and where they part: compared with a comparison of all their records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.quorum.positions import Agrees, Behind, Diverges, LogPosition, compare, truncation_point
from tests.quorum.member import ListLog, Record


def log_of(epochs: list[int], start_offset: int = 0) -> ListLog:
    log = ListLog(records=[Record(epoch, number) for number, epoch in enumerate(epochs)])
    log.compact(start_offset)
    return log


def test_an_empty_log_is_the_beginning_of_every_log() -> None:
    assert compare(log_of([1, 1, 2]), LogPosition(0, 0)) == Agrees()


def test_the_end_of_the_largest_epoch_that_both_may_share_is_told() -> None:
    leader = log_of([1, 1, 3, 3])
    assert compare(leader, LogPosition(4, 3)) == Agrees()
    assert compare(leader, LogPosition(3, 2)) == Diverges(LogPosition(2, 1))
    assert compare(leader, LogPosition(3, 1)) == Diverges(LogPosition(2, 1))
    assert compare(leader, LogPosition(9, 3)) == Diverges(LogPosition(4, 3))
    assert compare(leader, LogPosition(9, 7)) == Diverges(LogPosition(4, 3))


def test_what_is_only_in_a_snapshot_has_to_be_taken_from_it() -> None:
    leader = log_of([1, 1, 2, 2, 3], start_offset=3)
    assert compare(leader, LogPosition(0, 0)) == Behind(LogPosition(3, 2))
    assert compare(leader, LogPosition(2, 1)) == Behind(LogPosition(3, 2))
    assert compare(leader, LogPosition(3, 1)) == Behind(LogPosition(3, 2))
    assert compare(leader, LogPosition(3, 2)) == Agrees()
    assert compare(leader, LogPosition(4, 2)) == Agrees()


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two logs that a quorum could make: a common beginning, and then epochs of which none is in both."""
    common = draw(st.lists(st.integers(0, 1), max_size=4))
    steps = [sum(common[: index + 1]) + 1 for index in range(len(common))]
    last = steps[-1] if steps else 0
    mine, theirs = [], []
    for _ in range(draw(st.integers(0, 3))):
        last += 1
        draw(st.sampled_from([mine, theirs])).extend([last] * draw(st.integers(1, 3)))
    return steps + mine, steps + theirs


@given(histories())
def test_a_follower_reaches_the_leaders_log_whatever_its_own_holds(logs: tuple[list[int], list[int]]) -> None:
    leader, follower = map(log_of, logs)
    common = 0
    while common < min(map(len, logs)) and logs[0][common] == logs[1][common]:
        common += 1
    for _ in range(10):
        match compare(leader, follower.end):
            case Agrees():
                assert len(follower.records) <= common
                return
            case Diverges(at):
                offset = truncation_point(follower, at)
                assert offset < len(follower.records), "each round gives something up"
                assert offset >= common, "and nothing that both hold"
                follower.truncate(offset)
            case Behind():
                raise AssertionError("there is no snapshot")
    raise AssertionError("it never ends")
