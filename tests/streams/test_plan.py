"""A topology is data: it can be compared, described and drawn, and what cannot be right is refused when it is built."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import TYPE_CHECKING, Any

import pytest

from millstream.streams import (
    STRING_SERDE,
    KeyValueStore,
    NameCollision,
    NotCopartitioned,
    StreamsBuilder,
    Topology,
    TopologyError,
    col,
    hopping,
    max_of,
    session,
    sliding,
    sum_of,
    tumbling,
    until_window_closes,
    value,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Click:
    user: str
    page: str


def by_value(_key: Any, each: Any) -> Any:
    return each


def joined(one: Any, other: Any) -> str:
    return f"{one}|{other}"


def views() -> Topology:
    builder = StreamsBuilder()
    clicks = builder.stream("clicks", value=Click)
    grouped = clicks.filter(col("page") != "/health").group_by(col("user"))
    grouped.windowed_by(tumbling(60_000, grace_ms=1_000)).count(store="views").to_stream().to("views")
    return builder.build()


def test_the_same_program_gives_the_same_plan() -> None:
    assert views().plan == views().plan
    assert views().describe() == views().describe()
    other = StreamsBuilder()
    other.stream("clicks", value=Click).filter(col("page") != "/").to("views")
    assert views().plan != other.build().plan


def test_a_plan_prints_one_line_for_each_node() -> None:
    lines = str(views().plan).splitlines()
    assert [line.partition(":")[0] for line in lines] == [node.name for node in views().plan.nodes]
    click = "struct<user:string,page:string>"
    assert lines[1] == (
        "KSTREAM-FILTER-0000000001: Filter(predicate=(page != '/health')) "
        f"[string -> {click}] <- KSTREAM-SOURCE-0000000000"
    )
    assert lines[4] == (
        "KSTREAM-AGGREGATE-0000000003: Aggregate(aggregation=count, store=views, windows=tumbling, 60000 ms, "
        "grace 1000 ms) [windowed string -> bigint] <- views-repartition-source"
    )


def test_nodes_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        views().plan.nodes[0].name = "other"  # type: ignore[misc]


def test_a_description_names_internal_topics_in_full_when_it_knows_the_application() -> None:
    assert "(topic: views-repartition)" in views().describe()
    assert "(topic: shop-views-repartition)" in views().describe("shop")
    topics = {topic.name: (topic.cleanup_policy, topic.retention_ms) for topic in views().internal_topics("shop")}
    assert topics == {
        "shop-views-repartition": ("delete", -1),
        "shop-views-changelog": ("compact,delete", 61_000 + 86_400_000),
    }


def test_the_drawing_has_every_part_and_every_arrow() -> None:
    drawing = views().mermaid()
    assert drawing.startswith("flowchart TD\n")
    assert 'subgraph s1["sub-topology 1"]' in drawing
    assert "KSTREAM_AGGREGATE_0000000003 --> KTABLE_TOSTREAM_0000000007" in drawing
    assert '[("views")]' in drawing


def two_streams(builder: StreamsBuilder) -> tuple[Any, Any]:
    return builder.stream("a", value=str, partitions=3), builder.stream("b", value=str, partitions=4)


def test_topics_that_are_not_copartitioned_are_not_joined() -> None:
    left, right = two_streams(StreamsBuilder())
    with pytest.raises(NotCopartitioned, match=r"topic 'a' has 3 partitions and topic 'b' has 4.*repartition"):
        left.join(right, joined, within(10))


def test_a_repartitioned_side_can_be_joined() -> None:
    left, right = two_streams(StreamsBuilder())
    left.join(right.repartition(partitions=3), joined, within(10))


def test_a_side_with_a_new_key_is_repartitioned_and_the_description_says_so() -> None:
    builder = StreamsBuilder()
    left, right = two_streams(builder)
    right.select_key(by_value, key=str).join(left, joined, within(10)).to("out")
    assert "-repartition)" in builder.build().describe()


def test_keys_of_different_types_are_not_joined() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="string never equal keys of type bigint"):
        builder.stream("a", key=str).join(builder.table("b", key=int), joined)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tumbling(10, grace_ms=-1),
        lambda: hopping(10, 11),
        lambda: hopping(10, 0),
        lambda: sliding(-1),
        lambda: session(0),
        lambda: session(5, grace_ms=-1),
        lambda: within(-1),
        lambda: within(5, grace_ms=-1),
    ],
)
def test_windows_that_cannot_be_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"cannot be less than|gaps"):
        make()


def refused_two_nodes(builder: StreamsBuilder) -> None:
    builder.stream("a").filter(value().is_null(), name="x").filter(value().is_null(), name="x")


def refused_two_stores(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().count(store="x")
    builder.table("b", store="x")


def refused_two_added_stores(builder: StreamsBuilder) -> None:
    builder.add_state_store(KeyValueStore("x", STRING_SERDE, STRING_SERDE))
    builder.add_state_store(KeyValueStore("x", STRING_SERDE, STRING_SERDE))


def refused_two_topics(builder: StreamsBuilder) -> None:
    builder.stream("a").repartition(name="x")
    builder.stream("b").group_by(by_value, name="x").count()


@pytest.mark.parametrize("write", [refused_two_nodes, refused_two_stores, refused_two_added_stores, refused_two_topics])
def test_a_name_stands_for_one_thing(write: Callable[[StreamsBuilder], None]) -> None:
    with pytest.raises(NameCollision, match="'x"):
        write(StreamsBuilder())


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda b: b.stream("a").join(b.stream("b"), joined), "needs windows"),
        (lambda b: b.stream("a").join(b.table("b"), joined, within(1)), "has no windows"),
        (lambda b: b.stream("a").join(b.global_table("b"), joined), "needs `on`"),
        (
            lambda b: b.table("a")._join("outer", b.table("b"), joined, by_value, None, None, None, with_key=False),
            "inner",
        ),
        (lambda b: b.stream("a").to_table().suppress(until_window_closes()), "windowed table"),
        (lambda b: b.stream("a").group_by_key().emit_final(), "without windows"),
        (lambda b: b.stream("a").group_by_key().windowed_by(session(5)).aggregate(dict, by_value), "merger"),
        (lambda b: b.table("a").group_by(by_value).agg(top=max_of(col("x"))), "the next one is not known"),
        (lambda b: b.stream("a", value=Click).filter(col("page")), "not a condition"),
        (lambda b: b.stream("a", value=Click).map(col("page")), "two columns"),
        (lambda b: b.stream("a").process(object, "lost"), "no store 'lost'"),
        (lambda b: b.stream("a").split().no_default_branch(), "needs a branch"),
        (lambda b: (b.stream("a"), b.table("a")), "is read already"),
        (lambda b: (b.stream("a"), b.stream("a", timestamp_of=lambda _k, _v, at_ms: at_ms)), "in another way"),
        (lambda b: b.stream("no topic like this/").to_table(store="a/b"), "cannot be called"),
        (lambda b: b.build(), "no source"),
        (lambda b: b.stream("a", value=Click).select_key(col("page"), key=int), "page is a string, but its serde"),
        (lambda b: b.stream("a", value=Click).to("b", value=int), "value is a struct.*, but its serde is for bigint"),
    ],
)
def test_what_cannot_be_right_is_refused_with_its_reason(
    write: Callable[[StreamsBuilder], object], reason: str
) -> None:
    with pytest.raises(TopologyError, match=reason):
        write(StreamsBuilder())


def test_a_sum_of_a_text_is_refused() -> None:
    with pytest.raises(TypeError, match="is no number"):
        StreamsBuilder().stream("a", value=Click).group_by_key().agg(total=sum_of(col("page")))


def test_the_same_topic_is_read_once() -> None:
    builder = StreamsBuilder()
    builder.stream("a").to("x")
    builder.stream("a").to("y")
    assert builder.build().describe().count("Source:") == 1


def test_an_annotation_says_what_a_function_returns() -> None:
    def length(value: Click) -> int:
        return len(value.page)

    stream = StreamsBuilder().stream("a", value=Click)
    assert str(stream.map_values(length).flow.schema) == "string -> bigint"
    assert str(stream.map_values(lambda value: value.page).flow.schema) == "string -> any"
