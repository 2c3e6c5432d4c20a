"""Asks Spark for columns: a JSON list of SQL on standard input, on standard output a list of [type, value] or null.

A program of its own, so that its session does not meet those of other tests. Columns that are expected to have a value
are computed in one query; only if that fails, one by one.
"""

from __future__ import annotations

import json
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def ask(spark: SparkSession, columns: list[str]) -> list[list[object]]:
    frame = spark.sql("SELECT " + ", ".join(f"{column} AS c{number}" for number, column in enumerate(columns)))
    (row,) = frame.collect()
    return [[kind, value] for (_, kind), value in zip(frame.dtypes, row, strict=True)]


def ask_one(spark: SparkSession, column: str) -> list[object] | None:
    try:
        return ask(spark, [column])[0]
    except PySparkException:
        return None


def main() -> None:
    asked = json.load(sys.stdin)
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "1"}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        answers: list[list[object] | None] = list(ask(spark, asked["values"]))
    except PySparkException:
        answers = [ask_one(spark, column) for column in asked["values"]]
    failures = [ask_one(spark, column) for column in asked["errors"]]
    json.dump({"values": answers, "errors": failures}, sys.stdout)
    spark.stop()


if __name__ == "__main__":
    main()
