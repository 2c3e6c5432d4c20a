"""Millstream as its users run it: `millstream broker` in a process of its own, on a port that it picked itself.

It counts as started when it printed its one line with the address; that this line is true is part of what is tested.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Self

from tests.support.ports import free_ports
from tests.support.requirements import PROJECT_ROOT
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

READY = re.compile(r"127\.0\.0\.1:(\d+)")


class MillstreamProcess:
    """One broker process with its directory, which survives stops, kills and restarts."""

    name = "millstream"

    def __init__(
        self,
        directory: Path,
        *,
        data_directory: Path | None = None,
        settings: Mapping[str, str] | None = None,
        arguments: Iterable[str] = (),
        environment: Mapping[str, str] | None = None,
        listen: str | None = None,
        controller_listener: bool = False,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.data_directory = data_directory or directory / "data"
        self._controller_port = free_ports(1)[0] if controller_listener else None
        controller = f"CONTROLLER://127.0.0.1:{self._controller_port}"
        listeners = {"controller.listener.names": "CONTROLLER", "listeners": controller} if controller_listener else {}
        self.settings = listeners | dict(settings or {})
        self.log_path = directory / "broker.log"
        self._stdout_path = directory / "broker.out"
        self._arguments = tuple(arguments)
        self._environment = dict(environment or {})
        # A port of its own from the start: it has to be free again after every stop (`free_ports`).
        self._listen = listen or f"127.0.0.1:{free_ports(1)[0]}"
        self._port: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        assert self._port is not None, "not started"
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def controller_bootstrap(self) -> str:
        assert self._controller_port is not None, "started without a controller listener"
        return f"127.0.0.1:{self._controller_port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def command(self) -> list[str]:
        sets = [part for name, value in self.settings.items() for part in ("--set", f"{name}={value}")]
        place = ("--listen", self._listen, "--data-dir", str(self.data_directory))
        return [sys.executable, "-m", "millstream.cli.main", "broker", *place, *sets, *self._arguments]

    def launch(self) -> None:
        """Start the process without waiting for anything."""
        assert self._process is None, "already started"
        python_path = os.pathsep.join(filter(None, (str(PROJECT_ROOT / "src"), os.environ.get("PYTHONPATH", ""))))
        environment = os.environ | {"PYTHONPATH": python_path} | self._environment
        # An installed Millstream has compiled modules; compiling them at every start takes twice as long as all else.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with self._stdout_path.open("wb") as stdout, self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=log, env=environment
            )

    def start(self, *, within_s: float = 120) -> None:
        """Start and wait for the line that says where it listens; a restart comes back on the same port."""
        self.launch()
        self.until_ready(within_s=within_s)

    def until_ready(self, *, within_s: float = 120) -> None:
        """Wait for that line, after `launch`: the nodes of a cluster need each other to come up."""
        try:
            self._port = wait_until(self._ready_port, "Millstream's ready line", within_s=within_s, every_s=0.005)
        except BaseException:
            self.kill()
            raise
        self._listen = self.bootstrap_servers

    def _ready_port(self) -> int | None:
        assert self._process is not None
        found = READY.search(self.stdout())
        if found is not None:
            return int(found[1])
        if (code := self._process.poll()) is not None:
            raise AssertionError(f"Millstream ended with {code}:\n{self.stdout()}\n{self.log_tail()}")
        return None

    def stdout(self) -> str:
        """All that it printed to standard output since its start."""
        return self._stdout_path.read_text(errors="replace") if self._stdout_path.exists() else ""

    def log_tail(self, size: int = 4000) -> str:
        """The last words of its log, restarts included."""
        return self.log_path.read_text(errors="replace")[-size:] if self.log_path.exists() else ""

    def stop(self, *, within_s: float = 60) -> int:
        """A clean stop: SIGTERM, then wait for the end; its exit code."""
        return self._end(signal.SIGTERM, within_s)

    def kill(self) -> None:
        """End it without a chance to tidy up: kill -9."""
        self._end(signal.SIGKILL, 30)

    def restart(self) -> None:
        """A clean stop and a start on the same port and directory."""
        self.stop()
        self.start()

    def wait(self, within_s: float = 60) -> int:
        """The exit code of a process that ends by itself."""
        assert self._process is not None, "not started"
        code = self._process.wait(within_s)
        self._process = None
        return code

    def _end(self, how: signal.Signals, within_s: float) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(how)
        try:
            return process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
