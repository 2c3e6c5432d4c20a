"""A column means in Spark what it means here: the same value of the same type, or an error in both."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from millstream.streams import (
    Expression,
    ExpressionError,
    coalesce,
    concat,
    function,
    greatest,
    least,
    lit,
    struct,
    when,
)
from millstream.streams.expressions import Scope, compile_expression, to_sql
from millstream.streams.types import BOOLEAN, DOUBLE, INT, INT_MAX, LONG, LONG_MAX, STRING
from tests.streams import column_cases
from tests.support.requirements import require, unavailable

pytestmark = [pytest.mark.java, pytest.mark.slow]

NULL = lit(None)
NAN = lit("NaN").cast(DOUBLE)
PARTS = function("split", "a,b,,c,,", ",")
VALUES: list[Expression] = [
    *(lit(7) / 2, lit(1) / 3, lit(-7) % 3, lit(7) % -3, lit(7.5) % 2, lit(-7).div(2), -lit(5), lit(7) - 10),
    *(lit(0.1) + 0.2, lit(2) * 3.5, lit(LONG_MAX) - 1, lit(1) == 1.0, lit(1) < 1.5, lit("b") > "a"),
    *(NAN == NAN, NAN > 1e300, lit(1) < NAN, NAN != NAN, lit(5).between(1, 5)),
    *(function("round", number) for number in (2.5, -2.5, 0.5, 5)),
    *(function("round", number, digits) for number, digits in ((2.345, 2), (1.005, 2), (12345, -2))),
    *(function(name, number) for name in ("floor", "ceil", "abs") for number in (-1.5, 3, 2.0)),
    *(function("sqrt", 2), function("sqrt", -1), function("power", 2, 0.5)),
    *(function("substring", "millstream", start, 3) for start in (-12, -9, -3, -1, 0, 1, 8, 20)),
    *(function("substring", "abc", 2), function("substring", "abc", 1, 0), function("substring", "abc", 1, -1)),
    *(PARTS, PARTS[0], function("split", "abc", ""), function("split", "a,b,c", ",", 2), function("size", PARTS)),
    *(function("array_contains", PARTS, "b"), function("instr", "stream", "r"), function("reverse", "abc")),
    *(function(name, " Mill ") for name in ("upper", "lower", "trim", "ltrim", "rtrim", "length")),
    *(function("replace", "abcabc", "b"), function("regexp_replace", "a1b22", "[0-9]+", "#")),
    *(concat("it's", 1, True, 1.5, 1e10), concat("a", None), lit("a\\b\n'c'")),
    *(lit("mill_stream").like("mill\\_%"), lit("millXstream").like("mill\\_%"), lit("a\nb").like("a%b")),
    *(lit("mill").rlike("l+$"), lit("mill").contains("il"), lit("mill").starts_with("m"), lit("x").ends_with("y")),
    *(lit(text).cast(LONG) for text in (" 42 ", "-7", "+3")),
    *(lit(number).cast(INT) for number in (3.99, -3.99, True)),
    *(
        lit(number).cast(STRING)
        for number in (1.0, 1e7, 9999999.0, 1.25e-5, -123456789.5, 0.001, 1e300, -0.0, True, 42)
    ),
    *(lit(text).cast(BOOLEAN) for text in ("yes", "F", "1", 0, -1)),
    *(lit(text).cast(DOUBLE) for text in ("1.5", " 1e3 ", 7)),
    *(NULL == 1, NULL.eq_null_safe(None), lit(1).eq_null_safe(None), NULL.is_null(), NULL + 1),
    *((NULL == 1) & False, (NULL == 1) & True, (NULL == 1) | True, (NULL == 1) | False, ~(NULL == 1)),
    *(lit(1).is_in([2, None]), lit(1).is_in([1, None]), NULL.is_in([1])),
    *(coalesce(None, 3, 4.5), greatest(1, None, 3), least(None, 2, 3.5), function("nullif", 1, 1)),
    *(when(lit(1) > 2, "x").when(lit(2) > 1, "y").otherwise("z"), when(lit(1) > 2, "x")),
    *(when(lit(True), 1).otherwise(2.5), struct(a=1, b=concat("x", "y")), struct(a=struct(b=2))["a"]["b"]),
    *(column for column, _ in column_cases.VALUES),
]
ERRORS: list[Expression] = [
    *(lit(1) / 0, lit(1.5) / 0.0, lit(1) % 0, lit(INT_MAX) + 1, lit(LONG_MAX) + 1, lit(-LONG_MAX) - 2),
    *(lit(text).cast(INT) for text in ("4x", "4.7", "", "99999999999", 3e10)),
    *(lit("maybe").cast(BOOLEAN), lit("one").cast(DOUBLE), PARTS[9], lit(7.5).div(2), lit(True) + 1),
    *column_cases.ERRORS,
]


def here(column: Expression) -> list[Any] | None:
    try:
        compiled = compile_expression(column, Scope())
        return [str(compiled.type), compiled.run(None, None, 0, None)]
    except (TypeError, ExpressionError):
        return None


def test_spark_gives_the_same() -> None:
    require("java", "Spark needs Java 17")
    if find_spec("pyspark") is None:
        unavailable("PySpark is not installed: pip install 'millstream[spark]'")
    asked = {"values": [to_sql(column) for column in VALUES], "errors": [to_sql(column) for column in ERRORS]}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("spark_columns.py"))],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout)
    different = [
        f"{column}: here {here(column)}, in Spark {answer}"
        for column, answer in zip([*VALUES, *ERRORS], answers["values"] + answers["errors"], strict=True)
        if not same(here(column), answer)
    ]
    assert not different, "\n".join(different)


def same(ours: list[Any] | None, theirs: list[Any] | None) -> bool:
    # A struct comes back from Spark as a list of its fields; NaN is not equal to itself, but prints the same.
    if ours is not None and isinstance(ours[1], dict):
        ours = [ours[0], list(ours[1].values())]
    return repr(ours) == repr(theirs)
