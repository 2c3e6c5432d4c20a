"""`examples/demo.py --keep` goes on beyond its time, until Ctrl-C, and then leaves nothing behind.

The demo is Millstream's own: it starts the platform embedded.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from millstream import arrow
from millstream.client.errors import Refusal
from millstream.protocol.errors import ErrorCode
from tests.support.requirements import PROJECT_ROOT, require
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 1
# On a busy machine each of its four queries may have to be started several times.
PATIENCE_S = 420


def needs_spark(test: Callable[..., None]) -> Callable[..., None]:
    linux = pytest.mark.skipif(sys.platform != "linux", reason="who is left is looked up in /proc")
    return pytest.mark.java(pytest.mark.slow(linux(test)))


@contextmanager
def kept_demo(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The demo as in a terminal of its own, whose screen is a file and shown if the test fails."""
    path = os.pathsep.join([str(PROJECT_ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    with (folder / "out").open("wb") as stdout, (folder / "err").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, str(PROJECT_ROOT / "examples" / "demo.py"), "--keep", "--seconds", str(SECONDS)],
            env=os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    try:
        yield process
    except BaseException:
        print(says(folder))
        raise
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)


def says(folder: Path) -> str:
    return (folder / "out").read_text(errors="replace") + (folder / "err").read_text(errors="replace")


def fed_for_s(servers: str) -> float:
    """How long orders have been coming in, by their own times."""
    times = so_far(servers, "orders", "timestamp")
    span = pc.min_max(times).as_py()
    return (span["max"] - span["min"]).total_seconds() if len(times) else 0.0


def counted(servers: str) -> int:
    return len(so_far(servers, "orders-by-city", "offset"))


def so_far(servers: str, topic: str, column: str) -> pa.ChunkedArray:
    """A topic's column; nothing while the demo has not made the topic: its broker is heard of before."""
    try:
        return arrow.read(servers, topic, columns=[column])[column]
    except Refusal as refusal:
        if refusal.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return pa.chunked_array([[]])


def children_of(session: int) -> list[str]:
    """Who still runs in the demo's terminal."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        try:
            words = (process / "stat").read_text().rpartition(") ")[2].split()
            if int(words[3]) == session and words[0] != "Z":
                found.append((process / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found


def address(demo: subprocess.Popen[bytes], folder: Path) -> str | None:
    """The broker's, once the demo has said it."""
    assert demo.poll() is None, says(folder)
    found = re.search(r"protocol on\s+(127\.0\.0\.1:\d+)", (folder / "out").read_text(errors="replace"))
    return found[1] if found else None


def interrupt(demo: subprocess.Popen[bytes], folder: Path) -> None:
    """What a terminal does on Ctrl-C: everybody in it is told. The demo then ends, and leaves nothing behind."""
    os.killpg(demo.pid, signal.SIGINT)
    assert demo.wait(PATIENCE_S) == 0, says(folder)
    assert "stopping" in says(folder)
    assert "Traceback" not in says(folder), says(folder)
    wait_until(lambda: not children_of(demo.pid), "the demo's processes to end", every_s=0.1)
    assert not list(folder.glob("millstream-*")), "its directories are still there"


@needs_spark
def test_the_demo_goes_on_until_it_is_interrupted(tmp_path: Path) -> None:
    require("java", "Spark needs Java 17")
    with kept_demo(tmp_path) as demo:

        def goes_on(servers: str) -> bool:
            assert demo.poll() is None, says(tmp_path)
            return fed_for_s(servers) > SECONDS + 2 and counted(servers) > 0

        servers = wait_until(lambda: address(demo, tmp_path), "the demo's broker", within_s=PATIENCE_S)
        wait_until(lambda: goes_on(servers), "orders after the demo's time", within_s=PATIENCE_S, every_s=0.5)
        interrupt(demo, tmp_path)


@needs_spark
@pytest.mark.parametrize("seen", ["java", "pyspark-shell", "three pipelines"])
def test_the_demo_is_interrupted_while_it_starts(seen: str, tmp_path: Path) -> None:
    """While Java is looked for, while Spark starts, while pipelines do."""
    require("java", "Spark needs Java 17")
    with kept_demo(tmp_path) as demo:

        def is_seen() -> bool:
            assert demo.poll() is None, says(tmp_path)
            return any(seen in each for each in [says(tmp_path), *children_of(demo.pid)])

        wait_until(is_seen, seen, within_s=PATIENCE_S)
        interrupt(demo, tmp_path)
