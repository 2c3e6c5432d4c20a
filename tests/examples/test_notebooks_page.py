"""The cells of docs/notebooks.md run, one after the other, on the embedded Millstream that the first of them starts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from millstream import arrow
from tests.examples.test_examples import with_spark
from tests.spark.conftest import spark
from tests.support.requirements import PROJECT_ROOT

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

__all__ = ["spark"]
pytestmark = with_spark


def test_the_cells_run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (PROJECT_ROOT / "docs" / "notebooks.md").read_text()
    cells = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(cells) >= 8
    names: dict[str, Any] = {}
    try:
        for cell in cells:
            exec(
                compile(cell.replace("totals-checkpoint", str(tmp_path / "totals")), "docs/notebooks.md", "exec"), names
            )
        written = [json.loads(value) for value in arrow.read(names["servers"], "totals")["value"].to_pylist()]
    finally:
        names["broker"].stop()
    assert sorted(each["sum(euros)"] for each in written) == [5.0, 7.0]
    assert names["new"].num_rows == 2
