"""Functions on columns, for use in Python: each is a Call by Spark's name.

`function("upper", col("name"))` reaches every function that compiling knows; those with a shape of their own have a
name of their own here.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.streams.expressions.tree import Call, Expression, Literal, lit


def function(name: str, *arguments: object) -> Expression:
    """A function of Spark SQL by its name: upper, lower, trim, length, substring, abs, round, ..."""
    return Call(name.lower(), tuple(lit(argument) for argument in arguments))


def concat(*parts: object) -> Expression:
    """Texts one after the other; null if any is null."""
    return function("concat", *parts)


def coalesce(*choices: object) -> Expression:
    """The first that is not null."""
    return function("coalesce", *choices)


def greatest(*choices: object) -> Expression:
    """The largest; nulls are skipped."""
    return function("greatest", *choices)


def least(*choices: object) -> Expression:
    """The smallest; nulls are skipped."""
    return function("least", *choices)


def struct(**fields: object) -> Expression:
    """A struct of named columns: a dict in Python."""
    pairs = [part for name, column in fields.items() for part in (Literal(name), lit(column))]
    return Call("named_struct", tuple(pairs))


@dataclass(frozen=True, eq=False)
class Case(Call):
    """CASE WHEN ... THEN ... ELSE ... END: `when(a, x).when(b, y).otherwise(z)`."""

    def when(self, condition: Expression, then: object) -> Case:
        return Case("case", (*self.arguments, condition, lit(then)))

    def otherwise(self, value: object) -> Expression:
        return Call("case", (*self.arguments, lit(value)))


def when(condition: Expression, then: object) -> Case:
    """The start of a CASE; without `otherwise` it ends in null."""
    return Case("case", (condition, lit(then)))
