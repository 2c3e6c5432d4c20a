"""Sums, counts, extremes and means of columns, of streams and of tables, in windows and sessions."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from millstream.streams import (
    ExpressionError,
    StreamsBuilder,
    TopologyTestDriver,
    avg_of,
    col,
    count_of,
    max_of,
    min_of,
    session,
    sum_of,
    value,
)
from millstream.streams.types import DOUBLE, LONG, Struct


@dataclass
class Sale:
    shop: str
    cents: int | None


SALES = [Sale("a", 5), Sale("a", 1), Sale("b", 7), Sale("a", None), Sale("b", 2)]


def test_one_column() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("sales", value=Sale).group_by(col("shop"))
    for name, table in {
        "sum": grouped.sum(col("cents")),
        "min": grouped.min(col("cents")),
        "max": grouped.max(col("cents")),
        "avg": grouped.avg(col("cents")),
    }.items():
        table.to_stream().to(name)
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("sales").pipe_many([(None, sale) for sale in SALES])
    assert driver.output_topic("sum").read_key_values_to_map() == {"a": 6, "b": 9}
    assert driver.output_topic("min").read_key_values_to_map() == {"a": 1, "b": 2}
    assert driver.output_topic("max").read_key_values_to_map() == {"a": 5, "b": 7}
    assert driver.output_topic("avg").read_key_values_to_map() == {"a": 3.0, "b": 4.5}


def test_several_columns_make_a_struct() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("sales", value=Sale).group_by(col("shop"))
    table = grouped.agg(
        sales=count_of(),
        priced=count_of(col("cents")),
        total=sum_of(col("cents")),
        mean=avg_of(col("cents")),
        low=min_of(col("cents")),
        high=max_of(col("cents")),
    )
    assert table.flow.schema.value == Struct(
        {"sales": LONG, "priced": LONG, "total": LONG, "mean": DOUBLE, "low": LONG, "high": LONG}
    )
    table.to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("sales").pipe_many([(None, sale) for sale in SALES])
    rows = driver.output_topic("out").read_key_values_to_map()
    assert rows["a"] == {"sales": 3, "priced": 2, "total": 6, "mean": 3.0, "low": 1, "high": 5}


def test_a_table_takes_back_what_it_counted() -> None:
    builder = StreamsBuilder()
    grouped = builder.table("sales", value=Sale).group_by(col("shop"), value())
    grouped.agg(sales=count_of(), total=sum_of(col("cents")), mean=avg_of(col("cents"))).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    sales = driver.input_topic("sales")
    sales.pipe_many([("1", Sale("a", 5)), ("2", Sale("a", 1)), ("1", Sale("b", 5)), ("2", None)])
    rows = driver.output_topic("out").read_key_values_to_map()
    assert rows == {"a": {"sales": 0, "total": 0, "mean": None}, "b": {"sales": 1, "total": 5, "mean": 5.0}}


def test_sessions_merge_their_columns() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("sales", value=Sale).group_by_key().windowed_by(session(5, grace_ms=5))
    grouped.agg(total=sum_of(col("cents")), low=min_of(col("cents")), n=count_of()).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("sales").pipe_many([("k", Sale("a", 5), 0), ("k", Sale("a", 3), 8), ("k", Sale("a", 9), 4)])
    *_, (windowed, row) = driver.output_topic("out").read_key_values_to_list()
    assert (windowed.window, row) == ((0, 8), {"total": 17, "low": 3, "n": 3})


def test_a_sum_overflows_with_an_error() -> None:
    builder = StreamsBuilder(value=int)
    builder.stream("in").group_by_key().sum(value())
    driver = TopologyTestDriver(builder.build())
    with pytest.raises(ExpressionError, match="out of range"):
        driver.input_topic("in").pipe_many([("k", 2**62), ("k", 2**62)])
