"""A new Python worker, of which Spark starts many, loads little before its first batch; bench has the time.

One broker will do, Millstream embedded: what takes time here are the worker's own imports and its first decode.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream import arrow

if TYPE_CHECKING:
    from tests.arrow.conftest import Embedded


def test_the_first_batch_loads_nothing_heavy(embedded: Embedded, fresh_name: str) -> None:
    arrow.write(embedded.bootstrap_servers, fresh_name, pa.table({"value": [b"x"] * 1000}))
    script = Path(__file__).with_name("worker_start.py")
    command = [sys.executable, str(script), embedded.bootstrap_servers, fresh_name]
    outcome = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=180).stdout)
    assert (outcome["rows"], outcome["heavy"]) == (1000, [])
