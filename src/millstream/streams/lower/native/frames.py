"""Small tables that become part of a batch's plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def frame_of(spark: SparkSession, rows: Any, schema: str | None = None) -> DataFrame:
    """A DataFrame in a batch's own session, which is a copy of the user's.

    `createDataFrame` makes its session the active one of the whole program, and whoever asks for that later would get
    the copy, with our settings in it.
    """
    before = SparkSession._activeSession
    try:
        return spark.createDataFrame(rows, schema) if schema is not None else spark.createDataFrame(rows)
    finally:
        SparkSession._activeSession = before
