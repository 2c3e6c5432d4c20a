"""A topic as a Polars frame and as a DuckDB table, without Spark and without a copy per record.

python examples/topic_to_frames.py
"""

from __future__ import annotations

import json

import duckdb
import polars as pl
import pyarrow as pa

from millstream import Broker, arrow

CITIES = ("Amsterdam", "Berlin", "Cork")


def feed(servers: str) -> None:
    orders = [{"city": CITIES[number % len(CITIES)], "euros": number % 50} for number in range(3_000)]
    arrow.write(servers, "orders", pa.table({"value": [json.dumps(order) for order in orders]}))


def with_polars(servers: str) -> dict[str, int]:
    """Euros by city."""
    frame = pl.from_arrow(arrow.read(servers, "orders", columns=["value"]))
    assert isinstance(frame, pl.DataFrame)
    schema = pl.Struct({"city": pl.String, "euros": pl.Int64})
    orders = frame.select(pl.col("value").cast(pl.String).str.json_decode(schema).alias("order")).unnest("order")
    totals = orders.group_by("city").agg(pl.col("euros").sum()).sort("city")
    return dict(totals.iter_rows())


def with_duckdb(servers: str) -> dict[str, int]:
    """The same in SQL."""
    topic = arrow.read(servers, "orders", columns=["value"])
    with duckdb.connect() as database:
        database.register("orders", topic)
        rows = database.sql(
            "select purchase ->> 'city' as city, sum((purchase ->> 'euros')::int) as euros "
            "from (select decode(value)::json as purchase from orders) "
            "group by city order by city"
        ).fetchall()
    return {city: int(euros) for city, euros in rows}


def main() -> None:
    with Broker() as broker:
        feed(broker.bootstrap_servers)
        print("Polars:", with_polars(broker.bootstrap_servers))
        print("DuckDB:", with_duckdb(broker.bootstrap_servers))


if __name__ == "__main__":
    main()
