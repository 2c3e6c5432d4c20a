"""What goes wrong with a column while records flow; what is wrong with its types is a TypeError when it is built."""

from __future__ import annotations


class ExpressionError(ValueError):
    """A record's values broke a rule of Spark SQL: an overflow, a division by zero, a cast that has no result."""
