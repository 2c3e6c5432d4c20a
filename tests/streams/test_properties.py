"""What must hold whatever the records are: results equal what is computed from all records at once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from millstream.streams import (
    JoinWindows,
    StreamsBuilder,
    TopologyTestDriver,
    col,
    hopping,
    session,
    sliding,
    sum_of,
    value,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LONG_GRACE_MS = 10_000
keys = st.sampled_from("abc")
times = st.integers(0, 60)
records = st.lists(st.tuples(keys, st.sampled_from("xyz"), times), max_size=25)
# A table's changes, deletions included, in the order of time: tables take the last that came.
changes = st.lists(st.tuples(st.sampled_from(["left", "right"]), keys, st.sampled_from([*"abc", None])), max_size=25)


def run(write: Callable[[StreamsBuilder], object], *lines: tuple[str, Any, Any, int]) -> TopologyTestDriver:
    builder = StreamsBuilder(key=str, value=str)
    write(builder)
    driver = TopologyTestDriver(builder.build())
    for topic, key, each, time_ms in lines:
        driver.pipe_raw(topic, key.encode(), None if each is None else each.encode(), time_ms)
    return driver


def table_of(driver: TopologyTestDriver) -> dict[Any, Any]:
    """The output as a table: the last value of each key, without the deleted."""
    rows = driver.output_topic("out").read_key_values_to_map()
    return {key: each for key, each in rows.items() if each is not None}


def tables(lines: list[tuple[str, str, str | None]]) -> tuple[dict[str, str], dict[str, str]]:
    found: dict[str, dict[str, str]] = {"left": {}, "right": {}}
    for topic, key, each in lines:
        found[topic].pop(key, None)
        if each is not None:
            found[topic][key] = each
    return found["left"], found["right"]


def timed(lines: list[tuple[str, str, str | None]]) -> list[tuple[str, str, str | None, int]]:
    return [(*line, number) for number, line in enumerate(lines)]


@given(records)
def test_windows_count_the_records_in_them(lines: list[tuple[str, str, int]]) -> None:
    windows = hopping(10, 5, grace_ms=LONG_GRACE_MS)
    driver = run(
        lambda b: b.stream("in").group_by_key().windowed_by(windows).count().to_stream().to("out"),
        *(("in", *line) for line in lines),
    )
    counted = {(windowed.key, windowed.window.start_ms): count for windowed, count in table_of(driver).items()}
    expected = Counter(
        (key, start_ms) for key, _, at in lines for start_ms in range(0, 65, 5) if start_ms <= at < start_ms + 10
    )
    assert counted == expected


@given(records)
def test_sliding_windows_hold_what_lies_within_them(lines: list[tuple[str, str, int]]) -> None:
    shifted = [(key, each, at + 10) for key, each, at in lines]
    driver = run(
        lambda b: (
            b.stream("in").group_by_key().windowed_by(sliding(10, grace_ms=LONG_GRACE_MS)).count().to_stream().to("out")
        ),
        *(("in", *line) for line in shifted),
    )
    found = table_of(driver)
    for windowed, count in found.items():
        start_ms, end_ms = windowed.window
        assert count == sum(key == windowed.key and start_ms <= at <= end_ms for key, _, at in shifted)
    # Every record has the window that ends at it.
    assert {(key, at) for key, _, at in shifted} <= {(windowed.key, windowed.window.end_ms) for windowed in found}


@given(records)
def test_sessions_are_the_runs_without_a_longer_pause(lines: list[tuple[str, str, int]]) -> None:
    driver = run(
        lambda b: (
            b.stream("in").group_by_key().windowed_by(session(5, grace_ms=LONG_GRACE_MS)).count().to_stream().to("out")
        ),
        *(("in", *line) for line in lines),
    )
    expected: dict[tuple[str, int, int], int] = {}
    for key in "abc":
        run_of: list[int] = []
        for at in [*sorted(at for each, _, at in lines if each == key), 10_000]:
            if run_of and at - run_of[-1] > 5:
                expected[key, run_of[0], run_of[-1]] = len(run_of)
                run_of = []
            run_of.append(at)
    assert {(windowed.key, *windowed.window): count for windowed, count in table_of(driver).items()} == expected


@given(records, records)
def test_an_inner_join_of_streams_is_every_pair_within_the_window(
    left: list[tuple[str, str, int]], right: list[tuple[str, str, int]]
) -> None:
    windows = JoinWindows(before_ms=5, after_ms=8, grace_ms=LONG_GRACE_MS)
    lines = sorted([("left", *line) for line in left] + [("right", *line) for line in right], key=lambda line: line[2])
    driver = run(
        lambda b: (
            b.stream("left").join(b.stream("right"), lambda one, other: one + other, windows).to("out", value=str)
        ),
        *lines,
    )
    expected = Counter(
        (key, one + other, max(at, other_at))
        for key, one, at in left
        for other_key, other, other_at in right
        if key == other_key and at - 5 <= other_at <= at + 8
    )
    found = driver.output_topic("out", value=str).read_records_to_list()
    assert Counter((record.key, record.value, record.timestamp_ms) for record in found) == expected


@given(changes)
def test_joins_of_tables_end_as_the_join_of_what_the_tables_end_as(lines: list[tuple[str, str, str | None]]) -> None:
    def write(b: StreamsBuilder) -> None:
        left, right = b.table("left"), b.table("right")

        def both(one: str | None, other: str | None) -> str:
            return f"{one}|{other}"

        left.join(right, both).to_stream().to("inner")
        left.left_join(right, both).to_stream().to("left-join")
        left.outer_join(right, both).to_stream().to("outer")
        left.join(right, both, on=lambda each: each).to_stream().to("foreign")
        left.left_join(right, both, on=lambda each: each).to_stream().to("left-foreign")

    driver = run(write, *timed(lines))
    left, right = tables(lines)

    def out(topic: str) -> dict[str, str]:
        rows = driver.output_topic(topic).read_key_values_to_map()
        return {key: each for key, each in rows.items() if each is not None}

    assert out("inner") == {key: f"{left[key]}|{right[key]}" for key in left if key in right}
    assert out("left-join") == {key: f"{left[key]}|{right.get(key)}" for key in left}
    assert out("outer") == {key: f"{left.get(key)}|{right.get(key)}" for key in left | right}
    assert out("foreign") == {key: f"{each}|{right[each]}" for key, each in left.items() if each in right}
    assert out("left-foreign") == {key: f"{each}|{right.get(each)}" for key, each in left.items()}


@given(changes)
def test_a_grouped_table_ends_as_the_groups_of_what_the_table_ends_as(lines: list[tuple[str, str, str | None]]) -> None:
    def write(b: StreamsBuilder) -> None:
        grouped = b.table("left").group_by(value(), value())
        grouped.count().to_stream().to("out")

    driver = run(write, *(line for line in timed(lines) if line[0] == "left"))
    left, _ = tables(lines)
    assert {key: count for key, count in table_of(driver).items() if count} == Counter(left.values())


@given(changes)
def test_a_table_through_a_stream_is_the_same_table(lines: list[tuple[str, str, str | None]]) -> None:
    def write(b: StreamsBuilder) -> None:
        again = b.table("left", store="first").to_stream().to_table(store="second")
        again.to_stream().to("out")

    driver = run(write, *(line for line in timed(lines) if line[0] == "left"))
    assert dict(driver.store("second").all()) == dict(driver.store("first").all()) == tables(lines)[0]
    assert table_of(driver) == tables(lines)[0]


@given(st.lists(st.tuples(keys, st.integers(-1000, 1000)), max_size=30))
def test_a_sum_of_a_column_is_the_sum(lines: list[tuple[str, int]]) -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().agg(total=sum_of(col("n"))).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("in").pipe_many([(key, {"n": number}) for key, number in lines])
    rows = driver.output_topic("out").read_key_values_to_map()
    assert {key: row["total"] for key, row in rows.items()} == {
        key: sum(number for each, number in lines if each == key) for key, _ in lines
    }
