"""Five real processes, every kind of fault once, clients at work all the while: nothing that was promised is lost.

`make soak` does the same for as long as it is told, with faults by the dice (`python -m tests.cluster_chaos`). Links
are cut with network namespaces; where the kernel gives none, with relays, and two of the faults are left out.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from tests.support.requirements import PROJECT_ROOT

pytestmark = [pytest.mark.slow, pytest.mark.clients]

SEED = os.environ.get("MILLSTREAM_CHAOS_SEED", "1")
WITHIN_S = 900


def chaos(*arguments: str) -> str:
    """What a run printed; it fails with all of it."""
    command = [sys.executable, "-m", "tests.cluster_chaos", "--seed", SEED, *arguments]
    with subprocess.Popen(
        command, cwd=PROJECT_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as running:
        try:
            told, _ = running.communicate(timeout=WITHIN_S)
        finally:
            # Nodes are of its group: none may outlive it, however it ended.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    if running.returncode != 0:
        pytest.fail(told, pytrace=False)
    return told


def test_a_heavy_load_is_copied_to_the_last_record() -> None:
    """Eight transactional and ten idempotent producers, four copiers of both group protocols; one node is killed."""
    told = chaos("--load", "heavy", "--nodes", "3", "--faults", "kill").splitlines()
    assert told[-1].endswith("no anomaly")


def test_clients_lose_nothing_whatever_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    told = chaos().splitlines()
    with capsys.disabled():
        print("\n" + "\n".join(line for line in told if "== " in line or line.startswith(("seed", "replay"))))
    assert told[-1].endswith("no anomaly")
