"""Columns mean what they mean in Spark SQL, in its default (ANSI) mode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from millstream.streams import (
    Expression,
    ExpressionError,
    coalesce,
    col,
    concat,
    function,
    greatest,
    key,
    least,
    left,
    lit,
    right,
    struct,
    timestamp,
    value,
    when,
    window_start,
)
from millstream.streams.expressions import Scope, compile_expression
from millstream.streams.types import (
    ANY,
    BOOLEAN,
    DOUBLE,
    INT,
    INT_MAX,
    LONG,
    LONG_MAX,
    STRING,
    TIMESTAMP,
    Array,
    DataType,
    Map,
    Struct,
    type_of,
)


@dataclass
class Address:
    city: str


@dataclass
class Order:
    price: float
    quantity: int
    name: str | None
    address: Address | None
    tags: list[str]


TYPED = Scope(STRING, type_of(Order))
PLAIN = Struct({"i": INT, "n": LONG, "x": DOUBLE, "s": STRING, "b": BOOLEAN})
NAN = math.nan
ORDER = Order(2.5, 4, None, Address("Delft"), ["a", "b"])


def run(column: Expression, held: Any = None, scope: Scope | None = None) -> Any:
    return compile_expression(column, scope or Scope()).run("k", held, 17, None)


def kind_of(column: Expression, kind: DataType = PLAIN) -> DataType:
    return compile_expression(column, Scope(STRING, kind)).type


def test_fields_come_from_dicts_and_dataclasses_alike() -> None:
    assert run(col("price") * col("quantity"), ORDER, TYPED) == 10.0
    assert run(col("price") * col("quantity"), {"price": 2.5, "quantity": 4}) == 10.0
    assert run(col("address.city"), ORDER, TYPED) == "Delft"
    assert run(col("address")["city"], {"address": {"city": "Delft"}}) == "Delft"
    assert run(col("address.city"), {"address": None}) is None
    assert run(col("tags")[1], ORDER, TYPED) == "b"
    assert (run(key()), run(timestamp()), run(value(), 5)) == ("k", 17, 5)


def test_a_misspelt_field_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(TypeError, match="did you mean 'quantity'"):
        run(col("quantty"), ORDER, TYPED)


@pytest.mark.parametrize(
    ("column", "result"),
    [
        (lit(None) == 1, None),
        (lit(None).eq_null_safe(None), True),
        (lit(None) + 1, None),
        (lit(None) & False, False),
        (lit(None) & True, None),
        (lit(None) | True, True),
        (lit(None) | False, None),
        (~(lit(None) == 1), None),
        (lit(None).is_null(), True),
        (lit(1).is_in([2, None]), None),
        (lit(1).is_in([1, None]), True),
        (lit(5).between(1, 5), True),
        (coalesce(None, None, 3), 3),
        (greatest(1, None, 3), 3),
        (least(None, 2, 3), 2),
        (concat("a", None), None),
        (function("nullif", 1, 1), None),
    ],
)
def test_null_is_unknown(column: Expression, result: object) -> None:
    assert run(column) is result if result is None or isinstance(result, bool) else run(column) == result


@pytest.mark.parametrize(
    ("column", "result"),
    [
        (lit(7) / 2, 3.5),
        (lit(-7) % 3, -1),
        (lit(7) % -3, 1),
        (lit(-7).div(2), -3),
        (-lit(3), -3),
        (10 - lit(3), 7),
        (lit(0.1) + 0.2, 0.1 + 0.2),
        (function("round", 2.5), 3.0),
        (function("round", -2.5), -3.0),
        (function("round", 2.345, 2), 2.35),
        (function("floor", -1.5), -2),
        (function("abs", -3), 3),
        (lit(NAN) == lit(NAN), True),
        (lit(NAN) > math.inf, True),
        (lit(1) < lit(NAN), True),
    ],
)
def test_numbers(column: Expression, result: object) -> None:
    found = run(column)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("column", "result"),
    [
        (function("upper", "mill"), "MILL"),
        (function("substring", "millstream", 1, 4), "mill"),
        (function("substring", "millstream", -6, 3), "str"),
        (function("length", "mill"), 4),
        (concat("a", 1, True), "a1true"),
        (lit("millstream").like("mill%"), True),
        (lit("mill_stream").like("mill\\_%"), True),
        (lit("millXstream").like("mill\\_%"), False),
        (lit("millstream").rlike("l+s"), True),
        (lit("a,b,c").starts_with("a"), True),
        (function("split", "a,b,c", ","), ["a", "b", "c"]),
        (function("split", "a,b,c", ",", 2), ["a", "b,c"]),
        (function("instr", "stream", "r"), 3),
        (when(lit(1) > 2, "x").when(lit(2) > 1, "y").otherwise("z"), "y"),
        (when(lit(1) > 2, "x"), None),
        (struct(a=1, b=concat("x", "y")), {"a": 1, "b": "xy"}),
    ],
)
def test_texts_choices_and_structs(column: Expression, result: object) -> None:
    assert run(column) == result


@pytest.mark.parametrize(
    ("column", "result"),
    [
        (lit(" 42 ").cast(LONG), 42),
        (lit(3.99).cast(INT), 3),
        (lit(-3.99).cast(INT), -3),
        (lit(1).cast(STRING), "1"),
        (lit(1.0).cast(STRING), "1.0"),
        (lit(1e7).cast(STRING), "1.0E7"),
        (lit(1.25e-5).cast(STRING), "1.25E-5"),
        (lit(-123456789.5).cast(STRING), "-1.234567895E8"),
        (lit(0.001).cast(STRING), "0.001"),
        (lit(True).cast(STRING), "true"),
        (lit("yes").cast(BOOLEAN), True),
        (lit(None).cast(INT), None),
    ],
)
def test_casts(column: Expression, result: object) -> None:
    assert run(column) == result


@pytest.mark.parametrize(
    "column",
    [
        lit(1) / 0,
        lit(1) % 0,
        lit(LONG_MAX) + 1,
        lit(INT_MAX) + 1,
        lit("4x").cast(INT),
        lit(3e10).cast(INT),
        lit("maybe").cast(BOOLEAN),
    ],
)
def test_what_has_no_result_is_an_error_and_not_a_null(column: Expression) -> None:
    with pytest.raises(ExpressionError):
        run(column)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (col("i") + 1, INT),
        (col("i") + col("n"), LONG),
        (col("n") * col("x"), DOUBLE),
        (col("i") / col("i"), DOUBLE),
        (col("s") == "a", BOOLEAN),
        (when(col("b"), col("i")).otherwise(1.5), DOUBLE),
        (coalesce(None, col("n")), LONG),
        (timestamp(), TIMESTAMP),
        (function("split", col("s"), ","), Array(STRING)),
        (struct(a=col("i")), Struct({"a": INT})),
    ],
)
def test_types_are_known_when_the_topology_is_built(column: Expression, kind: DataType) -> None:
    assert kind_of(column) == kind


@pytest.mark.parametrize(
    "column",
    [
        col("s") + 1,
        col("b") * 2,
        col("s") == col("n"),
        col("s") & col("b"),
        col("i")["field"],
        function("uper", col("s")),
        left("s"),
        right(),
        window_start(),
    ],
)
def test_what_does_not_fit_is_refused_when_the_topology_is_built(column: Expression) -> None:
    with pytest.raises(TypeError):
        kind_of(column)


def test_a_mixed_choice_gives_doubles_also_for_ints() -> None:
    found = run(when(lit(True), 1).otherwise(2.5))
    assert (found, type(found)) == (1.0, float)


def test_a_column_prints_as_sql_and_compares_as_data() -> None:
    column = (col("price") > 1) & (col("name").is_null() | (key("id") == "it's"))
    assert str(column) == "((price > 1) and ((name IS NULL) or (key.id = 'it''s')))"
    assert column.same_as((col("price") > 1) & (col("name").is_null() | (key("id") == "it's")))
    assert not column.same_as((col("price") > 2) & (col("name").is_null() | (key("id") == "it's")))
    assert not lit(1).same_as(lit(True))


def test_a_column_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="use & for"):
        bool(col("a") == 1)


def test_types_of_annotations() -> None:
    assert str(type_of(Order)) == (
        "struct<price:double,quantity:bigint,name:string,address:struct<city:string>,tags:array<string>>"
    )
    assert type_of(dict[str, int]) == Map(STRING, LONG)
    assert type_of(Any) == ANY
    with pytest.raises(TypeError, match="several types"):
        type_of(int | str)
