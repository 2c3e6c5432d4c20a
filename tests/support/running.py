"""What a test may ask of a broker, whoever wrote it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol


class RunningBroker(Protocol):
    """A broker process on loopback: Apache Kafka's or ours."""

    name: str
    data_directory: Path

    @property
    def bootstrap_servers(self) -> str: ...
    @property
    def controller_bootstrap(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def pid(self) -> int: ...
    def launch(self) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> object: ...
    def kill(self) -> None: ...


def memory_kb(pid: int, what: str = "VmRSS") -> int:
    """Resident memory of a process (`VmHWM` for the most it ever was)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1])
    raise LookupError(what)


def forget_peak_memory(pid: int) -> None:
    """Let `VmHWM` start again from what is resident now: a process that tests share has a past."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has used, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
