"""Columns: expressions over a record, as frozen data.

    col("price") * col("quantity") > 100

tree.py the nodes and the operators, functions.py the functions, compiling.py turns a tree into a Python function and
its type (arithmetic.py, casting.py, library.py, patterns.py and forms.py say what calls mean), sql.py into Spark SQL.
The meaning is Spark SQL's in its default (ANSI) mode, so both give the same: a null operand gives null, `and` and `or`
know three values, ints overflow with an error, `/` is always a double.
"""

from __future__ import annotations

from millstream.streams.expressions.compiling import Scope, compile_expression
from millstream.streams.expressions.errors import ExpressionError
from millstream.streams.expressions.forms import Compiled
from millstream.streams.expressions.functions import (
    coalesce,
    concat,
    function,
    greatest,
    least,
    struct,
    when,
)
from millstream.streams.expressions.sql import to_sql
from millstream.streams.expressions.tree import (
    Expression,
    col,
    key,
    left,
    lit,
    right,
    timestamp,
    value,
    window_end,
    window_start,
)

__all__ = [
    "Compiled",
    "Expression",
    "ExpressionError",
    "Scope",
    "coalesce",
    "col",
    "compile_expression",
    "concat",
    "function",
    "greatest",
    "key",
    "least",
    "left",
    "lit",
    "right",
    "struct",
    "timestamp",
    "to_sql",
    "value",
    "when",
    "window_end",
    "window_start",
]
