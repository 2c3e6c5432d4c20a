"""The lines of docs/arrow.md that lead into other libraries, run as they stand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from millstream import arrow
from tests.support.requirements import PROJECT_ROOT

if TYPE_CHECKING:
    from collections.abc import Callable


def documented(call: str) -> str:
    """The one line of the page that has this call."""
    page = (PROJECT_ROOT / "docs" / "arrow.md").read_text()
    (line,) = re.findall(rf"^frame = .*{re.escape(call)}.*$", page, re.MULTILINE)
    found: str = line
    return found


@pytest.fixture
def written(bootstrap: str, make_topic: Callable[..., str]) -> str:
    topic = make_topic(3)
    values = ["v" * index for index in range(100)]
    arrow.write(bootstrap, topic, pa.table({"key": values, "value": values}))
    return topic


def run(line: str, bootstrap: str, topic: str) -> Any:
    orders = arrow.read(bootstrap, topic)
    known = {"arrow": arrow, "duckdb": duckdb, "pl": pl, "servers": bootstrap, "topic": topic, "orders": orders}
    exec(line, known)
    return known["frame"]


def test_polars(bootstrap: str, written: str) -> None:
    frame = run(documented("pl.from_arrow"), bootstrap, written)
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == 100
    assert frame["value"].bin.size().sum() == sum(range(100))
    arrow.write(bootstrap, written, frame.select("key", "value"))
    assert arrow.read(bootstrap, written).num_rows == 200


def test_pandas(bootstrap: str, written: str) -> None:
    frame = run(documented("to_pandas"), bootstrap, written)
    assert isinstance(frame, pd.DataFrame)
    assert frame["value"].map(len).sum() == sum(range(100))
    assert str(frame["timestamp"].dtype) == "datetime64[ms, UTC]"


def test_duckdb(bootstrap: str, written: str) -> None:
    relation = run(documented("duckdb.sql"), bootstrap, written)
    assert relation.fetchall() == [(100, sum(range(100)))]
