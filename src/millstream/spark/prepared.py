"""`mapInArrow` with a function that stays the same from batch to batch: Spark is told of it once.

Spark's own `mapInArrow` pickles the function, looks up each column and asks the JVM some fifty questions, each time. A
query that does so for every micro-batch waits longer for that than for anything else that happens in its driver's
Python. What is different from batch to batch must then come to the function in another way (exactly_once_task.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.util import PythonEvalType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa


class PreparedMap:
    """For the rows of one query: all of them must have these columns."""

    def __init__(
        self, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], columns: Sequence[str], to: str
    ) -> None:
        of_spark: Any = f
        made = of_spark.pandas_udf(function, to, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        self._applied: Any = made(*[f.col(f"`{name}`") for name in columns])

    def over(self, rows: DataFrame) -> DataFrame:
        """What the function makes of the rows; nothing happens before somebody asks for it."""
        found: Any = rows
        return DataFrame(found._jdf.mapInArrow(self._applied._jc, False, None), rows.sparkSession)  # noqa: FBT003
