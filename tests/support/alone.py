"""Runs a function in an interpreter of its own, for what can only be measured of a whole process.

Memory, threads, descriptors and garbage belong to the process, and a test worker has more in it than one test: brokers
of a session, clients' threads, what the test before left to be collected. A fresh interpreter has only the function.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.support.requirements import PROJECT_ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

_PROGRAM = """
import json, sys
from importlib import import_module
module, name, arguments = sys.argv[1:]
print(json.dumps(getattr(import_module(module), name)(*json.loads(arguments))))
"""


def run_alone(function: Callable[..., Any], *arguments: object) -> Any:
    """What the function returns in a fresh interpreter; arguments and result pass as JSON."""
    words = (function.__module__, function.__name__, json.dumps(arguments))
    path = os.pathsep.join(
        filter(None, (str(PROJECT_ROOT), str(PROJECT_ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    )
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *words],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
        cwd=PROJECT_ROOT,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])
