"""What a test needs from the machine, and what happens where the machine lacks it.

A laptop without Java still runs most of the suite: a test that needs a missing tool is skipped and says which tool.
CI sets MILLSTREAM_REQUIRE_ALL=1, and then the same test fails, so that nothing is skipped unnoticed. `unavailable`
says so by itself, for programs that are no tests; of tests, skips.py makes every skip a failure, however it was made.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT_ROOT = Path(__file__).resolve().parents[2]


def cache_directory() -> Path:
    """Where things fetched by name are kept between runs."""
    path = Path(os.environ.get("MILLSTREAM_TEST_CACHE") or PROJECT_ROOT / ".cache").absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


def everything_required() -> bool:
    return os.environ.get("MILLSTREAM_REQUIRE_ALL", "") not in ("", "0")


def unavailable(reason: str) -> NoReturn:
    """Skip the test, or fail it where everything is required."""
    if everything_required():
        pytest.fail(f"{reason} (MILLSTREAM_REQUIRE_ALL is set)", pytrace=False)
    pytest.skip(reason)


def require(tool: str, hint: str = "") -> str:
    """The path of a program, or the test is skipped."""
    path = shutil.which(tool)
    if path is None:
        unavailable(f"`{tool}` is not on the PATH{': ' + hint if hint else ''}")
    return path


@contextmanager
def built_once(name: str) -> Iterator[tuple[Path, bool]]:
    """A folder of the cache, and whether it is complete already; it counts as complete when the block ends well.

    Two test processes that start together build it once: the second waits for the first.
    """
    folder = cache_directory() / name
    folder.mkdir(parents=True, exist_ok=True)
    complete = folder / ".complete"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder, complete.exists()
        complete.touch()
