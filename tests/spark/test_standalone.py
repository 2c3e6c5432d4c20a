"""A cluster of two workers whose Python finds the package where nobody may write, and has an empty home."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import millstream
from tests.spark.standalone import standalone

if TYPE_CHECKING:
    from tests.arrow.conftest import Embedded

pytestmark = [pytest.mark.java, pytest.mark.slow]


def installed(folder: Path) -> Path:
    """The package as an installation has it, for reading only."""
    source = Path(millstream.__file__).parent
    shutil.copytree(source, folder / "millstream", ignore=shutil.ignore_patterns("__pycache__"))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return folder


def test_a_job_runs_on_a_cluster_of_two_workers(embedded: Embedded, fresh_name: str, tmp_path: Path) -> None:
    packages = installed(tmp_path / "packages")
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        "HOME": str(home),
        "PYTHONPATH": str(packages),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    files = sorted(packages.rglob("*"))
    with standalone(tmp_path, workers=2, environment=environment) as master:
        script = Path(__file__).with_name("standalone_job.py")
        arguments = [master, embedded.bootstrap_servers, fresh_name, str(tmp_path / "checkpoint")]
        done = subprocess.run(
            [sys.executable, str(script), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=480,
            env={**os.environ, **environment},
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert (outcome["records"], outcome["sum"]) == (1000, sum(range(1000)))
    assert len(outcome["executors"]) == 2, "both workers took part"
    assert sorted(packages.rglob("*")) == files, "nothing was written beside the package"
    assert [path.name for path in home.iterdir()] == []
