"""The interpreter gives what Spark gives, also where Python and Java go apart: one application uses both."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.streams import (
    Expression,
    ExpressionError,
    StreamsBuilder,
    TopologyTestDriver,
    coalesce,
    col,
    function,
    greatest,
    lit,
    timestamp,
    value,
    when,
    window_start,
)
from millstream.streams.expressions import Scope, compile_expression, to_sql
from millstream.streams.types import BOOLEAN, DOUBLE, LONG, STRING, TIMESTAMP, DataType, Struct
from tests.streams.column_cases import ERRORS, NULL, VALUES

TIMED = Scope(STRING, Struct({"at": TIMESTAMP, "n": LONG, "s": STRING}), windowed=True)


def run(column: Expression, held: Any = None, scope: Scope | None = None) -> Any:
    return compile_expression(column, scope or Scope()).run("k", held, 17, None)


@pytest.mark.parametrize(
    ("column", "result"), VALUES, ids=lambda each: str(each) if isinstance(each, Expression) else ""
)
def test_values(column: Expression, result: object) -> None:
    # Their texts, since NaN is not equal to itself, True is to 1, and 0.0 is to -0.0.
    assert repr(run(column)) == repr(result)


@pytest.mark.parametrize("column", ERRORS, ids=str)
def test_what_has_no_value_is_an_error_of_ours(column: Expression) -> None:
    try:
        compiled = compile_expression(column, Scope())
    except TypeError:
        return  # Refused when the topology is built.
    with pytest.raises(ExpressionError):
        compiled.run("k", None, 17, None)


@pytest.mark.parametrize(
    ("column", "kind", "result"),
    [
        (timestamp() > 5, BOOLEAN, True),
        (timestamp().between(1, 5), BOOLEAN, False),
        (timestamp() < 17.5, BOOLEAN, True),
        (lit(5) < timestamp(), BOOLEAN, True),
        (col("at") >= 3, BOOLEAN, True),
        (col("at").is_in([3, 4]), BOOLEAN, True),
        (col("at") == col("n"), BOOLEAN, False),
        (coalesce(col("at"), 0), LONG, 3),
        (greatest(col("at"), 2.5), DOUBLE, 3.0),
        (when(col("at") > 1, timestamp()).otherwise(0.5), DOUBLE, 17.0),
        (function("abs", timestamp()), LONG, 17),
        (timestamp() + 0, LONG, 17),
    ],
)
def test_a_time_goes_with_all_numbers(column: Expression, kind: DataType, result: object) -> None:
    compiled = compile_expression(column, TIMED)
    assert compiled.type == kind
    assert repr(compiled.run("k", {"at": 3, "n": 4, "s": "x"}, 17, None)) == repr(result)


def test_the_start_of_a_window_goes_with_small_numbers() -> None:
    assert compile_expression(window_start() > 5, TIMED).type == BOOLEAN


@pytest.mark.parametrize(
    "column",
    [
        function("sqrt", "4"),
        function("power", "2", 2),
        function("abs", col("s")),
        function("round", 2.5, col("n")),
        function("substring", "abc", 1.5),
        function("upper", b"a"),
        function("concat", b"a", b"b"),
        function("upper", lit(["a"])),
        function("split", "a,b", "("),
        lit("a").rlike("(?P<n>a)"),
        *(lit("a").rlike(pattern) for pattern in ("[a-z&&[^b]]", "[[a-c]x]", "(?u)a", "(?iu)a")),
        timestamp() == "now",
    ],
    ids=str,
)
def test_what_spark_would_cast_or_read_otherwise_is_refused_when_the_topology_is_built(column: Expression) -> None:
    with pytest.raises(TypeError):
        compile_expression(column, TIMED)


@pytest.mark.parametrize(
    "column",
    [
        *(col("x") / 2, col("x") % 2, col("x").div(2), col("x") + 1, -col("x"), col("x") > 1),
        *(function(name, col("x")) for name in ("abs", "round", "floor", "sqrt")),
        *(function("power", 2, col("x")), function("size", col("x")), function("substring", "abc", col("x"))),
        *(function("array_contains", col("x"), 1), coalesce(col("x"), 1.5, 2), greatest(col("x"), 1.5, 2)),
        *(function(name, "a", col("x")) for name in ("rlike", "like", "split")),
        col("x")["y"],
    ],
    ids=str,
)
def test_values_that_nobody_declared_and_that_do_not_fit_are_errors_of_ours(column: Expression) -> None:
    with pytest.raises(ExpressionError):
        run(column, {"x": "(\\"})


@pytest.mark.parametrize(
    "column", [col("x").cast(DOUBLE), col("x") / 2, coalesce(col("x"), 1.5, 2), greatest(col("x"), 1.5, 2)], ids=str
)
def test_an_integer_that_no_double_can_hold_is_an_error_of_ours(column: Expression) -> None:
    with pytest.raises(ExpressionError):
        run(column, {"x": 10**400})


def test_what_pythons_engine_cannot_read_is_refused_with_the_reason_and_a_bracket_is_not() -> None:
    with pytest.raises(ExpressionError, match=r"within \[\.\.\.\] a \[ and &&"):
        run(function("rlike", "a", col("x")), {"x": "[a-z&&[^b]]"})
    with pytest.raises(ExpressionError, match="recursion"):
        run(function("rlike", "a", col("x")), {"x": "(" * 5000 + ")" * 5000})
    assert run(function("rlike", "[", col("x")), {"x": r"^[\[a]$"}) is True


def test_the_driver_says_what_was_wrong_with_a_record() -> None:
    builder = StreamsBuilder(value=str)
    builder.stream("in").map_values(value().cast(DOUBLE) % 2).map_values(function("floor", value() * 1e30)).to("out")
    driver = TopologyTestDriver(builder.build())
    with pytest.raises(ExpressionError, match="floor"):
        driver.input_topic("in").pipe_input("k", "1.5")


def test_an_empty_list_has_sql_that_spark_can_read() -> None:
    assert to_sql(col("n").is_in([])) == "CASE WHEN `value`.`n` IS NULL THEN NULL ELSE false END"
    assert to_sql(NULL.is_in([1])) == "(NULL IN (1))"
