"""An application looks at its topics before it runs: those that are joined must have as many partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_partitions, create_topics, list_topics
from millstream.client.sync import SyncClient
from millstream.streams import NotCopartitioned, StreamsBuilder, within
from millstream.streams.errors import TopologyError
from millstream.streams.lower.sinking import refuse_growth
from millstream.streams.lower.subtopologies import subtopologies
from millstream.streams.lower.topics import check_copartitioned, find_counts, partition_counts, prepare_topics
from millstream.streams.settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.millstream_process import MillstreamProcess


def joined(one: Any, other: Any) -> str:
    return f"{one}|{other}"


def joined_up(_key: Any, each: str, so_far: str) -> str:
    return so_far + each


def rekeyed(_key: Any, each: str) -> str:
    return each


def checked(build: Callable[[StreamsBuilder], Any], **known: int) -> dict[str, int]:
    """How many partitions all topics get, where these are there."""
    builder = StreamsBuilder(key=str, value=str)
    build(builder)
    plan = builder.build().plan
    parts = subtopologies(plan)
    counts = partition_counts(plan, parts, known)
    check_copartitioned(counts, plan)
    return counts


JOINS: dict[str, Callable[[StreamsBuilder], Any]] = {
    "streams": lambda b: b.stream("a").join(b.stream("b"), joined, within(5), result=str).to("out"),
    "a stream and a table": lambda b: b.stream("a").left_join(b.table("b"), joined, value=str).to("out"),
    "tables": lambda b: b.table("a").outer_join(b.table("b"), joined).to_stream().to("out"),
    "streams of one table": lambda b: (
        b.stream("a")
        .group_by_key()
        .cogroup(joined_up)
        .cogroup(b.stream("b").group_by_key(), joined_up)
        .aggregate(str)
        .to_stream()
        .to("out")
    ),
}


@pytest.mark.parametrize("kind", JOINS)
def test_joined_topics_must_have_as_many_partitions(kind: str) -> None:
    assert checked(JOINS[kind], a=3, b=3) == {"a": 3, "b": 3}
    with pytest.raises(NotCopartitioned, match=r"'a' has 2, 'b' has 3: put \.repartition\(\) before the join"):
        checked(JOINS[kind], a=2, b=3)


def test_what_is_repartitioned_for_the_join_takes_the_other_sides_number() -> None:
    def build(builder: StreamsBuilder) -> None:
        moved = builder.stream("a").select_key(rekeyed, key=str)
        moved.join(builder.table("b"), joined, value=str).to("out")

    counts = checked(build, a=2, b=5)
    assert sorted(counts.values()) == [2, 5, 5]


def test_what_needs_no_equal_numbers_may_have_others() -> None:
    def merged(builder: StreamsBuilder) -> None:
        builder.stream("a").merge(builder.stream("b")).to("out")

    def everywhere(builder: StreamsBuilder) -> None:
        everybody = builder.global_table("b")
        builder.stream("a").join(everybody, joined, on=rekeyed, value=str).to("out")

    def by_foreign_key(builder: StreamsBuilder) -> None:
        builder.table("a").join(builder.table("b"), joined, on=lambda each: each[:1]).to_stream().to("out")

    for build in (merged, everywhere, by_foreign_key):
        assert {"a": 2, "b": 3}.items() <= checked(build, a=2, b=3).items()


def test_what_is_merged_with_a_join_need_not_have_as_many() -> None:
    def merged_behind(builder: StreamsBuilder) -> None:
        paired = builder.stream("a").join(builder.stream("b"), joined, within(5), result=str)
        paired.merge(builder.stream("c")).to("out")

    def repartitioned(builder: StreamsBuilder) -> None:
        moved = builder.stream("a").select_key(rekeyed, key=str)
        moved.join(builder.table("b"), joined, value=str).merge(builder.stream("c")).to("out")

    def merged_before(builder: StreamsBuilder) -> None:
        builder.stream("a").merge(builder.stream("c")).join(builder.table("b"), joined, value=str).to("out")

    assert checked(merged_behind, a=2, b=2, c=5) == {"a": 2, "b": 2, "c": 5}
    moved = checked(repartitioned, a=2, b=3, c=5)
    assert sorted(moved.values()) == [2, 3, 3, 5], "the internal topic has as many as the table"
    with pytest.raises(NotCopartitioned, match="'a' has 2, 'b' has 3"):
        checked(merged_behind, a=2, b=3, c=2)
    with pytest.raises(NotCopartitioned, match="'a' has 3, 'c' has 5, 'b' has 3"):
        checked(merged_before, a=3, b=3, c=5)


def test_an_application_is_refused_before_it_has_made_a_topic(millstream: MillstreamProcess, fresh_name: str) -> None:
    """Nobody said the numbers when the topology was built: they are the cluster's."""
    name = fresh_name
    builder = StreamsBuilder(key=str, value=str)
    builder.stream(f"{name}-a").join(builder.table(f"{name}-b"), joined, value=str).to(f"{name}-out")
    plan = builder.build().plan
    settings = settings_of(f"{name}-app", millstream.bootstrap_servers, {})
    with SyncClient({"bootstrap.servers": millstream.bootstrap_servers}) as client:
        new = [NewTopic(f"{name}-{each}", count, 1) for each, count in (("a", 2), ("b", 3), ("out", 1))]
        raise_first(client.run(create_topics, new))
        with pytest.raises(NotCopartitioned, match=f"'{name}-a' has 2, '{name}-b' has 3"):
            client.run(prepare_topics, plan, settings)
        assert not [topic.name for topic in client.run(list_topics) if topic.name.startswith(f"{name}-app-")]


def test_where_tasks_keep_what_is_in_no_store_grows_with_the_topics(
    millstream: MillstreamProcess, fresh_name: str
) -> None:
    """An application without state goes on with more partitions."""
    name = fresh_name
    builder = StreamsBuilder(key=str, value=str)
    builder.stream(f"{name}-in").to(f"{name}-out")
    plan = builder.build().plan
    settings = settings_of(f"{name}-app", millstream.bootstrap_servers, {})
    with SyncClient({"bootstrap.servers": millstream.bootstrap_servers}) as client:
        raise_first(client.run(create_topics, [NewTopic(f"{name}-{each}", 2, 1) for each in ("in", "out")]))
        assert client.run(prepare_topics, plan, settings)[f"{name}-app-tasks-changelog"] == 2
        raise_first(client.run(create_partitions, {f"{name}-in": 5}))
        assert client.run(prepare_topics, plan, settings)[f"{name}-app-tasks-changelog"] == 5
        found = client.run(find_counts, [f"{name}-app-tasks-changelog"])
        assert list(found.values()) == [5]


def test_topics_with_state_must_not_grow_while_an_application_runs() -> None:
    refuse_growth([("counted", 0), ("counted", 2), ("passed-on", 7)], {"counted": 3})
    with pytest.raises(TopologyError, match="'counted' had 3 partitions when the application started"):
        refuse_growth([("counted", 0), ("counted", 3)], {"counted": 3})
