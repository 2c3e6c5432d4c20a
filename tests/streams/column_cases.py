"""Columns where Python and Java go apart, and what Spark makes of them.

test_expressions_like_spark.py holds the interpreter to them, test_expressions_spark.py asks Spark whether they are
true.
"""

from __future__ import annotations

import math
from typing import Any

from millstream.streams import Expression, coalesce, function, lit
from millstream.streams.types import BOOLEAN, DOUBLE, INT, INT_MAX, INT_MIN, LONG, LONG_MAX, LONG_MIN, STRING

NAN, INF, NULL = math.nan, math.inf, lit(None)
# The largest bigint as a double: one more than it is.
LARGE = float(LONG_MAX)

NUMBERS: list[tuple[Expression, Any]] = [
    (function("power", -8.0, 1 / 3), NAN),
    (function("power", 10.0, 400), INF),
    (function("power", -10.0, 401), -INF),
    (function("power", 0, -1), INF),
    (function("power", -0.0, -1), -INF),
    (function("power", 1, NAN), NAN),
    (function("power", -1, INF), NAN),
    (function("power", NAN, 0), 1.0),
    (function("floor", NAN), 0),
    (function("ceil", NAN), 0),
    (function("floor", lit(5)), 5),
    (lit(INF) % 2, NAN),
    (lit(5) % INF, 5.0),
    (lit(LONG_MIN) % -1, 0),
    (lit(INT_MIN).div(-1), 2**31),
    (function("round", 1e300, 2), 1e300),
    (function("round", 1e300, -400), 0.0),
    (function("round", 1.5, 400), 1.5),
    (function("round", 9e307, -308), 1e308),
    (function("round", -0.4), 0.0),
    (function("round", INT_MAX), INT_MAX),
    (function("round", 12345, -20), 0),
    (lit(LONG_MAX) == LARGE, True),
    (lit(LONG_MAX) < LARGE, False),
    (lit(LONG_MAX).eq_null_safe(LARGE), True),
    (lit(LONG_MAX).is_in([LARGE]), True),
    (function("nullif", LONG_MAX, LARGE), None),
    (function("array_contains", lit([LONG_MAX]), LARGE), True),
]
CASTS: list[tuple[Expression, Any]] = [
    (lit("1.5d").cast(DOUBLE), 1.5),
    (lit("1e5F").cast(DOUBLE), 1e5),
    (lit("0x1p3").cast(DOUBLE), 8.0),
    (lit(".5").cast(DOUBLE), 0.5),
    (lit("5.").cast(DOUBLE), 5.0),
    (lit("1e400").cast(DOUBLE), INF),
    (lit("-inf").cast(DOUBLE), -INF),
    (lit("+Infinity").cast(DOUBLE), INF),
    (lit("nan").cast(DOUBLE), NAN),
    (lit("\t1.5\n").cast(DOUBLE), 1.5),
    (lit("\x0115\n").cast(LONG), 15),
    (lit(" TRUE\t").cast(BOOLEAN), True),
    (lit(str(LONG_MIN)).cast(LONG), LONG_MIN),
    (lit(LARGE).cast(LONG), LONG_MAX),
    (lit(INT_MAX + 0.9).cast(INT), INT_MAX),
]
TEXTS: list[tuple[Expression, Any]] = [
    (function("regexp_replace", "a1b22", "([0-9]+)", "<$1>"), "a<1>b<22>"),
    (function("regexp_replace", "a1", "([0-9])", "\\1"), "a1"),
    (function("regexp_replace", "a1b", "([a-z])([0-9])", "\\2"), "2b"),
    (function("regexp_replace", "a1", "[0-9]", "\\$"), "a$"),
    (function("regexp_replace", "a1", "[0-9]", "\\\\"), "a\\"),
    (function("regexp_replace", "a1", "[0-9]", "$0$0"), "a11"),
    (function("regexp_replace", "a1", "([0-9])", "$12"), "a12"),
    (function("regexp_replace", "a1", "(?<n>[0-9])", "${n}!"), "a1!"),
    (function("regexp_replace", "a1", "(x)?1", "[$1]"), "a[]"),
    (function("regexp_replace", "ab", "[0-9]", "$9"), "ab"),
    (function("regexp_replace", "baac", "a*", "-"), "-b--c-"),
    (function("regexp_replace", "a\u0661", "\\d", "x"), "a\u0661"),
    (lit("\u00e9").rlike("\\w"), False),
    (lit("${user}"), "${user}"),
    (function("split", "a1b2c", "([0-9])"), ["a", "b", "c"]),
    (function("split", "a1b2c", "([0-9])", 2), ["a", "b2c"]),
    (function("split", "abc", "", 2), ["a", "bc"]),
    (function("split", "abc", "x*"), ["a", "b", "c", ""]),
    (function("split", "aXbXc", "x*", 3), ["a", "X", "bXc"]),
    (function("split", "abc", "(?=a)"), ["abc"]),
    (function("split", "a|b", "|"), ["a", "|", "b", ""]),
    (function("split", "a,b,c", ",", 0), ["a", "b", "c"]),
    (function("split", "", ","), [""]),
    (function("split", 121, 2), ["1", "1"]),
    (lit("a\\b").like("a\\\\b"), True),
    (function("length", lit(5).cast(LONG)), 1),
    (function("length", True), 4),
    (function("length", 1.5), 3),
    (function("length", b"\x01\x02"), 2),
    (lit("a1").contains(1), True),
    (lit(12).starts_with(1), True),
    (lit(12).like("1%"), True),
    (lit(True).rlike("r"), True),
    (function("instr", "a1", 1), 2),
    (function("replace", 12, 1, True), "true2"),
    (function("substring", 12345, 2, 2), "23"),
    (function("substring", "abc", lit(2).cast(LONG), 1), "b"),
    (function("upper", 1e10), "1.0E10"),
    (function("reverse", True), "eurt"),
]
NULLS: list[tuple[Expression, Any]] = [
    *((function(name, NULL), None) for name in ("upper", "length", "trim", "reverse", "size")),
    *((function(name, NULL), None) for name in ("abs", "round", "floor", "sqrt")),
    *((NULL + NULL, None), (-NULL, None), (NULL.div(2), None), (NULL / 0, None)),
    (function("nullif", NULL, 1), None),
    (function("nullif", 1, NULL), 1),
    (function("nullif", NULL, NULL), None),
    (function("nullif", NAN, NAN), None),
    (function("nullif", 1, 1.0), None),
    (function("nullif", 1, 2.0), 1),
    (function("array_contains", lit(["a", None]), "z"), None),
    (function("array_contains", lit(["a", None]), "a"), True),
    (function("array_contains", lit([None, "a"]), "a"), True),
    (function("array_contains", lit([NAN]), NAN), True),
    (function("array_contains", lit([1, 2]), 1.0), True),
    (lit([1, 2.5]), [1.0, 2.5]),
    (function("array", 1, 2.5), [1.0, 2.5]),
    (lit(1).is_in([]), False),
    (NULL.is_in([]), None),
    (~coalesce(lit(1).is_in([]), True), True),
]
VALUES = [*NUMBERS, *CASTS, *TEXTS, *NULLS]
ERRORS: list[Expression] = [
    *(function(name, number) for name in ("floor", "ceil") for number in (1e30, INF, -INF, LARGE)),
    *(function("abs", number) for number in (LONG_MIN, INT_MIN)),
    *(-lit(LONG_MIN), lit(LONG_MIN).div(-1)),
    *(function("round", number, -1) for number in (INT_MAX, LONG_MAX)),
    *(lit(text).cast(LONG) for text in ("1_000", "\u0661\u0662", "15L", "+", "\u00a015", "15.5", NAN, 9.3e18)),
    *(lit(text).cast(DOUBLE) for text in ("1_0.5", "\u0661\u0662", "-nan", "infinityd", "nand", "", "\u00a01.5")),
    lit("\u00a0true").cast(BOOLEAN),
    *(function("regexp_replace", "a1", "[0-9]", new) for new in ("$1", "$", "$x", "x\\", "${n}")),
    *(lit("a").like("a\\"), lit("ab").like("\\ab")),
    *(function("sqrt", True), function("abs", True), function("power", True, 2), function("size", "abc")),
    *(function("length", lit([1])), function("array_contains", lit([1]), "1"), function("array_contains", NULL, 1)),
    *(function("nullif", True, 1), lit(1).cast(STRING)[0]),
]
