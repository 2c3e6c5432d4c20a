"""The limit that a load generator has on this machine: bench/limit_broker.c, compiled when it is first asked for.

It shares no code with either contender. Where a row's load generator is the limit, no broker can be further ahead than
the one that keeps nothing; one that only stores shows what keeping the records leaves of it.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
from pathlib import Path

from tests.support.millstream_process import MillstreamProcess
from tests.support.requirements import built_once, require

SOURCE = Path(__file__).with_name("limit_broker.c")
FLAGS = ("-O3", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
# The broker checks CRC-32C by the processor's own instruction where there is one.
PROCESSOR_FLAGS = {"x86_64": ("-msse4.2",)}
KEEPS_NOTHING, STORES = "keeps-nothing", "stores"


def compiled() -> Path:
    """The program, compiled once for each state of its source."""
    flags = (*FLAGS, *PROCESSOR_FLAGS.get(platform.machine(), ()))
    state = hashlib.sha256(SOURCE.read_bytes() + " ".join(flags).encode()).hexdigest()[:16]
    with built_once(f"limit-broker-{state}") as (folder, complete):
        program = folder / "limit_broker"
        if not complete:
            command = [require("gcc"), *flags, "-o", str(program), str(SOURCE)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    return program


class LimitBroker(MillstreamProcess):
    """The program as a process with a directory, started, stopped and watched as a contender is."""

    name = "limit"

    def __init__(self, directory: Path, mode: str) -> None:
        super().__init__(directory)
        self.mode = mode

    @property
    def command(self) -> list[str]:
        return [str(compiled()), self._listen.rpartition(":")[2], str(self.data_directory), self.mode]
