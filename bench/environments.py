"""Environments of their own for programs that want other packages, or other versions, than ours."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.requirements import built_once, unavailable

if TYPE_CHECKING:
    from pathlib import Path

INSTALLED_WITHIN_S = 900


def python_with(*requirements: str) -> Path:
    """The interpreter of an environment that has these, made when it is first asked for."""
    name = "-".join(requirements).replace("==", "-")
    with built_once(f"python-{name}") as (folder, complete):
        python = folder / "venv" / "bin" / "python"
        if not complete:
            for command in (
                [sys.executable, "-m", "venv", "--clear", str(folder / "venv")],
                [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements],
            ):
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALLED_WITHIN_S)
                if done.returncode != 0:
                    unavailable(f"{name} could not be installed: {(done.stdout + done.stderr)[-1500:]}")
    return python
