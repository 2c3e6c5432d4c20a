"""What people build on Apache Kafka's libraries, as processes: Kafka Streams programs and Kafka Connect workers.

They are clients of a broker like any other, but of all clients they ask most of it: transactions with offsets, fencing,
internal topics, groups with a protocol of their own.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Self

from tests.support.apache_kafka import QUICK_START, VERSION
from tests.support.maven import Artifact, fetched_jars
from tests.support.requirements import require

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ARTIFACTS = (
    *(
        Artifact("org.apache.kafka", name, VERSION)
        for name in ("kafka-streams", "connect-runtime", "connect-file", "connect-json")
    ),
    Artifact("org.slf4j", "slf4j-simple", "1.7.36"),
)


def application_jars() -> Path:
    """Kafka Streams, Kafka Connect and its file connectors."""
    return fetched_jars(f"kafka-applications-{VERSION}", ARTIFACTS)


class JavaProcess:
    """A Java program that runs until it is told to end; what it prints goes to a file."""

    def __init__(
        self, class_name: str, *arguments: str, log_path: Path, class_path: Iterable[str], heap: str = "256m"
    ) -> None:
        self.log_path = log_path
        self._command = [
            require("java", "Kafka's applications need Java 17"),
            f"-Xmx{heap}",
            *QUICK_START,
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-cp",
            ":".join(class_path),
            class_name,
            *arguments,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; when it is ready is for the caller to find out."""
        assert self._process is None, "already started"
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def said(self) -> str:
        """All that it printed, earlier starts included."""
        return self.log_path.read_text(errors="replace")

    def assert_alive(self) -> None:
        assert self._process is not None, "not started"
        code = self._process.poll()
        assert code is None, f"it ended with {code}:\n{self.said()[-4000:]}"

    def stop(self, *, within_s: float = 120) -> int:
        """SIGTERM, and its exit code."""
        process, self._process = self._process, None
        assert process is not None, "not started"
        process.terminate()
        try:
            return process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
            raise

    def kill(self) -> None:
        """End it with -9: no goodbye to the group, no end of the transaction."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
