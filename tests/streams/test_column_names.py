"""Columns may have any names: those of the parts that a mean is kept in, and those of options."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.streams import (
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
    avg_of,
    col,
    count_of,
    max_of,
    sum_of,
    tumbling,
    value,
)
from millstream.streams.plan.nodes import Aggregate
from millstream.streams.types import LONG, STRING, Struct

ROW = Struct({"x": LONG, "y": LONG, "name": STRING, "store": STRING})
FIRST = {"x": 1, "y": 100, "name": "a", "store": "s"}
SECOND = {"x": 3, "y": 300, "name": "b", "store": "t"}


def outcome(topology: Topology) -> Any:
    """The last value of the only key."""
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("in").pipe_many([("k", FIRST), ("k", SECOND)])
        return driver.output_topic("out").read_key_values_to_map()["k"]


@pytest.mark.parametrize("order", [1, -1])
def test_a_mean_does_not_mix_with_columns_of_its_parts_names(order: int) -> None:
    wanted = {"m": avg_of(col("x")), "m_sum": sum_of(col("y")), "m_count": max_of(col("y")), "m_": avg_of(col("y"))}
    builder = StreamsBuilder()
    grouped = builder.stream("in", value=ROW).group_by_key()
    grouped.agg(**dict(list(wanted.items())[::order])).to_stream().to("out")
    assert outcome(builder.build()) == {"m": 2.0, "m_sum": 400, "m_count": 300, "m_": 200.0}


def test_where_nothing_collides_parts_keep_the_names_that_changelogs_have() -> None:
    builder = StreamsBuilder()
    builder.stream("in", value=ROW).group_by_key().agg(n=count_of(), m=avg_of(col("x"))).to_stream().to("out")
    (kept,) = [node for node in builder.build().plan.nodes if isinstance(node, Aggregate)]
    assert str(kept.schema.value) == "struct<n:bigint,m_sum:bigint,m_count:bigint>"


def test_columns_called_name_and_store() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", value=ROW).select(name=col("name"), store=col("store"), x=col("x"))
    table = stream.to_table().select(name=col("name"), store=col("x"), x=col("store"))
    table.to_stream().to("out")
    assert outcome(builder.build()) == {"name": "b", "store": 3, "x": "t"}


def test_aggregates_called_name_and_store() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", value=ROW).group_by_key()
    grouped.agg(name=max_of(col("name")), store=sum_of(col("x"))).to_stream().to("out")
    assert outcome(builder.build()) == {"name": "b", "store": 4}
    builder = StreamsBuilder()
    regrouped = builder.table("in", value=ROW).group_by(col("name"), value())
    regrouped.agg(name=count_of(), store=sum_of(col("x"))).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_input("k", FIRST)
        assert driver.output_topic("out").read_value() == {"name": 1, "store": 1}


def test_a_text_as_name_and_store_still_names_them() -> None:
    builder = StreamsBuilder()
    table = builder.stream("in", value=ROW).select(x=col("x"), name="picked").to_table()
    table.select(y=col("x"), store="kept", name="again")
    topology = builder.build()
    assert {"picked", "again"} <= {node.name for node in topology.plan.nodes}
    assert "kept" in topology.plan.stores


@pytest.mark.parametrize("wanted", [{}, {"x": col("x")}])
def test_agg_takes_aggregates_only(wanted: dict[str, Any]) -> None:
    with pytest.raises(TopologyError, match="aggregate"):
        StreamsBuilder().stream("in", value=ROW).group_by_key().agg(**wanted)
    with pytest.raises(TopologyError, match="aggregate"):
        StreamsBuilder().table("in", value=ROW).group_by(col("name"), value()).agg(**wanted)


def test_a_named_store_holds_the_mean_and_not_its_parts() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", value=ROW).group_by_key()
    grouped.avg(col("x"), store="mean")
    grouped.agg(m=avg_of(col("x")), n=count_of(), store="both")
    builder.table("rows", value=ROW).group_by(col("name"), col("x")).avg(value(), store="by-name")
    # In windows it does: only such a store can be asked by key and time.
    grouped.windowed_by(tumbling(10)).avg(col("x"), store="in-windows")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_many([("k", FIRST), ("k", SECOND)])
        driver.input_topic("rows").pipe_input("k", FIRST)
        assert driver.store("mean").get("k") == 2.0
        assert driver.store("both").get("k") == {"m": 2.0, "n": 2}
        assert driver.store("by-name").get("a") == 1.0
        assert driver.store("in-windows").fetch("k", 0) == {"sum": 4, "count": 2}
