"""The topologies of Topologies.java in Python, under the same names. Keys and values are texts, counts are longs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from millstream.streams import (
    STRING_SERDE,
    JoinWindows,
    KeyValueStore,
    KTable,
    PunctuationType,
    Record,
    StreamsBuilder,
    hopping,
    session,
    sliding,
    tumbling,
    until_time_limit,
    until_window_closes,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Callable

CASES: dict[str, Callable[[StreamsBuilder], object]] = {}
WINDOW = JoinWindows(before_ms=7, after_ms=12, grace_ms=5)


def case(name: str) -> Callable[[Callable[[StreamsBuilder], object]], Callable[[StreamsBuilder], object]]:
    def declared(make: Callable[[StreamsBuilder], object]) -> Callable[[StreamsBuilder], object]:
        CASES[name] = make
        return make

    return declared


def plus(*parts: str | None) -> str:
    """Java's + on texts."""
    return "".join("null" if part is None else part for part in parts)


def join(left: str | None, right: str | None) -> str:
    return plus(left, "|", right)


def append(_key: str, value: str | None, held: str) -> str:
    return plus(held, value)


def append_slash(_key: str, value: str | None, held: str) -> str:
    return plus(held, "/", value)


def out(table: KTable) -> None:
    table.to_stream().to("out")


def regroup(key: str, value: str) -> tuple[str, str]:
    return value[:1], key + value


def by_value(_key: str, value: str) -> str:
    return value


def starts_with_a(_key: str, value: str) -> bool:
    return value.startswith("a")


def primed(value: str) -> str:
    return value + "'"


def grouped(b: StreamsBuilder) -> Any:
    return b.stream("left").group_by_key()


@case("stateless")
def _(b: StreamsBuilder) -> None:
    stream = b.stream("left").filter(lambda _key, value: value is not None and value != "a1")
    stream = stream.filter_not(lambda _key, value: value == "b2").map_values(lambda value: value + "!")
    stream = stream.flat_map_values(lambda value: [value, value + "?"]).map(lambda key, value: (value, key))
    stream = stream.flat_map(lambda key, value: [(value, key), (key, value)]).select_key(plus)
    stream.peek(lambda _key, _value: None).to("out")


@case("branches")
def _(b: StreamsBuilder) -> None:
    found = (
        b.stream("left")
        .split()
        .branch(lambda _key, value: value is None)
        .branch(starts_with_a, name="-letter-a")
        .default_branch()
    )
    one, a, rest = found.values()
    assert list(found) == [
        "KSTREAM-BRANCH-00000000011",
        "KSTREAM-BRANCH-0000000001-letter-a",
        "KSTREAM-BRANCH-00000000010",
    ]
    one.map_values(lambda _value: "nothing").merge(a).merge(rest.map_values(lambda value: "rest " + value)).to("out")


CASES["repartition"] = lambda b: b.stream("left").select_key(by_value).repartition().to("out")
CASES["repartition-named"] = lambda b: b.stream("left").repartition(name="mine").to("out")
CASES["count"] = lambda b: out(grouped(b).count())
CASES["count-of-two"] = lambda b: out(b.stream(["left", "right"]).group_by_key().count())
CASES["count-of-pattern"] = lambda b: out(b.stream(re.compile("left|r.*")).group_by_key().count())
CASES["count-named"] = lambda b: out(
    b.stream("left").group_by(by_value, name="by-value").count(name="counting", store="counts")
)
CASES["group-count"] = lambda b: out(b.stream("left").group_by(by_value).count())
CASES["group-count-store"] = lambda b: out(b.stream("left").group_by(by_value).count(store="counts"))
CASES["reduce"] = lambda b: out(grouped(b).reduce(plus))
CASES["aggregate"] = lambda b: out(
    grouped(b).aggregate(lambda: "0", lambda key, value, held: None if value == "a1" else append(key, value, held))
)
CASES["tumbling"] = lambda b: out(grouped(b).windowed_by(tumbling(10, grace_ms=15)).count())
CASES["hopping"] = lambda b: out(grouped(b).windowed_by(hopping(10, 3)).reduce(plus))
CASES["hopping-aggregate"] = lambda b: out(
    grouped(b).windowed_by(hopping(9, 3, grace_ms=7)).aggregate(lambda: "0", append)
)
CASES["sliding"] = lambda b: out(grouped(b).windowed_by(sliding(10, grace_ms=12)).aggregate(lambda: "0", append))
CASES["sliding-count"] = lambda b: out(grouped(b).windowed_by(sliding(4)).count())
CASES["session"] = lambda b: out(
    grouped(b)
    .windowed_by(session(5, grace_ms=8))
    .aggregate(lambda: "0", append, lambda _key, one, other: plus(one, other))
)
CASES["session-count"] = lambda b: out(grouped(b).windowed_by(session(3)).count())
CASES["session-reduce"] = lambda b: out(grouped(b).windowed_by(session(4, grace_ms=30)).reduce(plus))
CASES["tumbling-suppressed"] = lambda b: out(
    grouped(b).windowed_by(tumbling(10, grace_ms=6)).count().suppress(until_window_closes())
)
CASES["session-suppressed"] = lambda b: out(
    grouped(b).windowed_by(session(5, grace_ms=8)).count().suppress(until_window_closes())
)
CASES["sliding-suppressed"] = lambda b: out(
    grouped(b).windowed_by(sliding(6, grace_ms=9)).count().suppress(until_window_closes())
)
CASES["table-suppressed"] = lambda b: out(b.table("left").suppress(until_time_limit(9, records_max=2)))
CASES["suppressed-grouped"] = lambda b: out(_total(grouped(b).count().suppress(until_time_limit(9)), "all"))
CASES["tumbling-final"] = lambda b: out(grouped(b).windowed_by(tumbling(10, grace_ms=6)).emit_final().reduce(plus))
CASES["hopping-final"] = lambda b: out(grouped(b).windowed_by(hopping(10, 5, grace_ms=2)).emit_final().reduce(plus))
CASES["sliding-final"] = lambda b: out(grouped(b).windowed_by(sliding(10, grace_ms=6)).emit_final().count())
CASES["session-final"] = lambda b: out(grouped(b).windowed_by(session(5, grace_ms=6)).emit_final().count())
CASES["join"] = lambda b: b.stream("left").join(b.stream("right"), join, WINDOW, result=str).to("out")
CASES["left-join"] = lambda b: b.stream("left").left_join(b.stream("right"), join, WINDOW).to("out")
CASES["outer-join"] = lambda b: b.stream("left").outer_join(b.stream("right"), join, WINDOW).to("out")
CASES["outer-join-narrow"] = lambda b: b.stream("left").outer_join(b.stream("right"), join, within(4)).to("out")
CASES["left-join-after"] = lambda b: (
    b.stream("left").left_join(b.stream("right"), join, JoinWindows(0, 6, grace_ms=3)).to("out")
)
CASES["join-rekeyed"] = lambda b: (
    b.stream("left").select_key(by_value).join(b.stream("right").select_key(by_value), join, WINDOW).to("out")
)
CASES["left-join-rekeyed"] = lambda b: (
    b.stream("left").select_key(by_value).left_join(b.stream("right").select_key(by_value), join, WINDOW).to("out")
)
CASES["join-named"] = lambda b: (
    b.stream("left")
    .select_key(by_value)
    .outer_join(b.stream("right"), join, WINDOW, store="stores", name="pairs")
    .to("out")
)


@case("self-join")
def _(b: StreamsBuilder) -> None:
    left = b.stream("left")
    left.join(left, join, WINDOW).to("out")


CASES["stream-table"] = lambda b: b.stream("left").join(b.table("right"), join).to("out")
CASES["stream-table-left"] = lambda b: b.stream("left").left_join(b.table("right"), join).to("out")
CASES["stream-table-rekeyed"] = lambda b: b.stream("left").select_key(by_value).join(b.table("right"), join).to("out")
CASES["stream-table-left-rekeyed"] = lambda b: (
    b.stream("left").select_key(by_value).left_join(b.table("right"), join).to("out")
)
CASES["stream-table-derived"] = lambda b: (
    b.stream("left")
    .left_join(b.table("right").filter(lambda _key, value: not value.startswith("b")).map_values(primed), join)
    .to("out")
)


@case("stream-global")
def _(b: StreamsBuilder) -> None:
    table = b.global_table("right")
    b.stream("left").join(table, join, on=lambda _key, value: value and value[:1]).to("out")


@case("stream-global-left")
def _(b: StreamsBuilder) -> None:
    table = b.global_table("right")

    def on(_key: str, value: str | None) -> str | None:
        return None if value in (None, "c1") else value[:1]  # type: ignore[index]

    b.stream("left").left_join(table, join, on=on).to("out")


CASES["table-join"] = lambda b: out(b.table("left").join(b.table("right"), join))
CASES["table-left-join"] = lambda b: out(b.table("left").left_join(b.table("right"), join))
CASES["table-outer-join"] = lambda b: out(b.table("left").outer_join(b.table("right"), join))
CASES["table-join-store"] = lambda b: out(b.table("left").outer_join(b.table("right"), join, store="joined"))
CASES["table-join-grouped"] = lambda b: out(
    b.table("left").left_join(b.table("right"), join).group_by(lambda key, value: (value, key)).count()
)
CASES["table-joins"] = lambda b: out(
    b.table("left").join(b.table("right"), join).outer_join(b.table("third").map_values(primed), join)
)
CASES["table-filter"] = lambda b: out(b.table("left").filter(starts_with_a))
CASES["table-filter-store"] = lambda b: out(b.table("left", store="kept").filter(starts_with_a).map_values(primed))
CASES["table-filter-own-store"] = lambda b: out(b.table("left").filter_not(starts_with_a, store="kept"))
CASES["table-map-filter"] = lambda b: out(b.table("left").map_values(primed, store="mapped").filter(starts_with_a))
CASES["table-count"] = lambda b: out(b.table("left").group_by(regroup).count())
CASES["table-count-named"] = lambda b: out(
    b.table("left").group_by(regroup, name="groups").count(name="counting", store="counts")
)
CASES["table-aggregate"] = lambda b: out(
    b.table("left")
    .filter(lambda _key, value: value != "c2")
    .group_by(regroup)
    .aggregate(
        lambda: "0",
        lambda _key, value, held: plus(held, "+", value),
        lambda _key, value, held: plus(held, "-", value),
    )
)
CASES["table-reduce"] = lambda b: out(
    b.table("left").group_by(regroup).reduce(lambda x, y: x + "+" + y, lambda x, y: x + "-" + y)
)


def _total(table: KTable, key: str | None = None) -> KTable:
    mapper = (lambda _key, count: (key, count)) if key else (lambda windowed, count: (windowed.key, count))
    return table.group_by(mapper, key=str, value=int).reduce(lambda x, y: x + y, lambda x, y: x - y)


CASES["count-regrouped"] = lambda b: out(_total(grouped(b).count(), "all"))
CASES["tumbling-regrouped"] = lambda b: out(_total(grouped(b).windowed_by(tumbling(10, grace_ms=15)).count()))
CASES["session-regrouped"] = lambda b: out(_total(grouped(b).windowed_by(session(4, grace_ms=30)).count()))
CASES["sliding-regrouped"] = lambda b: out(_total(grouped(b).windowed_by(sliding(5, grace_ms=30)).count()))
CASES["to-table"] = lambda b: out(b.stream("left").to_table())
CASES["to-table-rekeyed"] = lambda b: out(
    b.stream("left").select_key(by_value).to_table(store="kept").filter(starts_with_a)
)


def refers(value: str) -> str | None:
    return None if value == "c1" else value[:1]


CASES["foreign-key"] = lambda b: out(b.table("left").join(b.table("right"), join, on=refers))
CASES["foreign-key-left"] = lambda b: out(b.table("left").left_join(b.table("right"), join, on=refers))
CASES["foreign-key-grouped"] = lambda b: out(
    b.table("left")
    .join(b.table("right"), join, on=lambda value: value[:1])
    .group_by(lambda key, value: (value, key))
    .count()
)
CASES["foreign-key-named"] = lambda b: out(
    b.table("left").join(b.table("right"), join, on=lambda value: value[:1], name="orders", store="joined")
)


def _cogrouped(b: StreamsBuilder) -> Any:
    return grouped(b).cogroup(append).cogroup(b.stream("right").group_by_key(), append_slash)


CASES["cogroup"] = lambda b: out(_cogrouped(b).aggregate(lambda: "0"))
CASES["cogroup-tumbling"] = lambda b: out(_cogrouped(b).windowed_by(tumbling(10, grace_ms=5)).aggregate(lambda: "0"))
CASES["cogroup-session"] = lambda b: out(
    _cogrouped(b).windowed_by(session(4, grace_ms=5)).aggregate(lambda: "0", lambda _key, one, other: plus(one, other))
)
CASES["cogroup-regrouped"] = lambda b: out(
    b.stream("left")
    .group_by(by_value, name="one")
    .cogroup(append)
    .cogroup(b.stream("right").group_by_key(), append_slash)
    .aggregate(lambda: "0", name="both", store="all")
)


class Remembering:
    """Remembers the last value of each key, and tells all of them at intervals."""

    def init(self, context: Any) -> None:
        self._context = context
        self._seen = context.get_state_store("seen")
        context.schedule(10, PunctuationType.STREAM_TIME, lambda now_ms: self._dump("stream", now_ms))
        context.schedule(7, PunctuationType.WALL_CLOCK_TIME, lambda now_ms: self._dump("wall", now_ms))

    def _dump(self, kind: str, now_ms: int) -> None:
        for key, value in self._seen.all():
            self._context.forward(Record(kind, plus(key, "=", value), now_ms))

    def process(self, record: Record) -> None:
        before = self._seen.get(record.key)
        self._seen.put(record.key, record.value)
        self._context.forward(record.with_value(plus(before, ">", record.value)))


@case("process")
def _(b: StreamsBuilder) -> None:
    b.add_state_store(KeyValueStore("seen", STRING_SERDE, STRING_SERDE, timestamped=False))
    b.stream("left").filter(lambda key, _value: key is not None).process(Remembering, "seen").to("out")


CASES["cogroup-sliding"] = lambda b: out(_cogrouped(b).windowed_by(sliding(6, grace_ms=5)).aggregate(lambda: "0"))
CASES["stream-table-suppressed"] = lambda b: (
    b.stream("left").left_join(b.table("right").suppress(until_time_limit(9)), join).to("out")
)


def numbers(one: int | None, other: int | None) -> str:
    return "|".join("null" if each is None else str(each) for each in (one, other))


CASES["counts-joined"] = lambda b: out(grouped(b).count().outer_join(b.stream("right").group_by_key().count(), numbers))


@case("windows-joined")
def _(b: StreamsBuilder) -> None:
    windows = tumbling(10, grace_ms=15)
    left = grouped(b).windowed_by(windows).count()
    out(left.left_join(b.stream("right").group_by_key().windowed_by(windows).count(), numbers))


@case("foreign-key-derived")
def _(b: StreamsBuilder) -> None:
    left = b.table("left").map_values(primed).filter(lambda _key, value: not value.startswith("b"))
    right = b.table("right").filter(lambda _key, value: value.endswith("1"))
    out(left.left_join(right, join, on=lambda value: value[:1]).map_values(lambda value: value + "!"))


@case("outer-join-filtered")
def _(b: StreamsBuilder) -> None:
    left = b.table("left").filter(lambda _key, value: not value.startswith("b"))
    right = b.table("right").map_values(lambda value: None if value == "c1" else value)
    out(left.outer_join(right, join).filter(lambda _key, value: not value.endswith("2")))


@case("table-twice")
def _(b: StreamsBuilder) -> None:
    left = b.table("left")
    first = left.filter(starts_with_a)
    out(left.join(b.table("right"), join))
    out(first)
    out(left.filter(lambda _key, value: value.startswith("b")))


@case("branches-joined")
def _(b: StreamsBuilder) -> None:
    left = b.stream("left")
    moved = left.filter(lambda _key, value: value is not None).select_key(lambda _key, value: value[:1])
    moved.join(b.table("right"), join).to("out")
    out(moved.group_by_key().reduce(plus))
    moved.left_join(b.stream("third"), join, WINDOW).to("out")


def maybe(_key: str, value: str | None) -> str | None:
    return None if value is None or value.endswith("2") else value[:1]


CASES["join-null-keys"] = lambda b: (
    b.stream("left").select_key(maybe).join(b.stream("right").select_key(maybe), join, WINDOW).to("out")
)
CASES["left-join-null-keys"] = lambda b: (
    b.stream("left").select_key(maybe).left_join(b.stream("right").select_key(maybe), join, WINDOW).to("out")
)
CASES["outer-join-null-keys"] = lambda b: (
    b.stream("left").select_key(maybe).outer_join(b.stream("right").select_key(maybe), join, WINDOW).to("out")
)
CASES["stream-table-null-keys"] = lambda b: b.stream("left").select_key(maybe).join(b.table("right"), join).to("out")
CASES["stream-table-left-null-keys"] = lambda b: (
    b.stream("left").select_key(maybe).left_join(b.table("right"), join).to("out")
)
CASES["repartition-left-join"] = lambda b: (
    b.stream("left").select_key(maybe).repartition().left_join(b.table("right"), join).to("out")
)
CASES["repartition-left-join-global"] = lambda b: (
    b.stream("left")
    .select_key(maybe)
    .repartition()
    .left_join(b.global_table("right"), join, on=lambda _key, value: value and value[:1])
    .to("out")
)


@case("grouped-twice")
def _(b: StreamsBuilder) -> None:
    groups = b.stream("left").group_by(by_value)
    out(groups.reduce(plus))
    out(groups.count())


@case("grouped-twice-named")
def _(b: StreamsBuilder) -> None:
    groups = b.stream("left").group_by(by_value, name="groups")
    out(groups.reduce(plus))
    out(groups.windowed_by(tumbling(10, grace_ms=15)).count())


@case("table-grouped-twice")
def _(b: StreamsBuilder) -> None:
    groups = b.table("left").group_by(regroup)
    out(groups.count())
    out(groups.reduce(lambda x, y: x + "+" + y, lambda x, y: x + "-" + y))
