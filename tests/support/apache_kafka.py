"""Apache Kafka 4.3.1 itself: the reference that everything here is compared with, and its command line tools.

The jars come from Maven by name into the cache (tests/support/maven.py). A broker is one combined node
(controller and broker in one process), in a folder of its own, on free ports of 127.0.0.1. A start takes about five
seconds, so tests share one through a session fixture and keep apart by topic names.

    kafka = ApacheKafka(tmp_path)
    kafka.format()
    kafka.start()
    kafka.run_tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", kafka.bootstrap_servers, "--list")
    kafka.stop()

It also runs on a directory that somebody else wrote: pass `data_directory`, and `properties` for what its owner
says about it (node id, listeners, voters); then don't call `format`.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from tests.support.maven import Artifact, fetched_jars
from tests.support.ports import answers_api_versions, free_ports
from tests.support.requirements import require
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VERSION = "4.3.1"
ARTIFACTS = (
    Artifact("org.apache.kafka", "kafka_2.13", VERSION),
    Artifact("org.apache.kafka", "kafka-tools", VERSION),
    Artifact("org.slf4j", "slf4j-simple", "1.7.36"),
)
# Short-lived JVMs: the first compiler only, shared class data, a collector without threads to start.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:+UseSerialGC")
# What Apache Kafka's own start script passes.
PRODUCTION = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)

Voters = Literal["static", "dynamic"]


def jar_directory() -> Path:
    """The folder with Apache Kafka's jars; fetched with Maven on the first call of all."""
    if given := os.environ.get("MILLSTREAM_KAFKA_JARS"):
        return Path(given)
    return fetched_jars(f"apache-kafka-{VERSION}", ARTIFACTS)


def java_command(class_name: str, *, jvm_options: Iterable[str] = QUICK_START, log_level: str = "warn") -> list[str]:
    """The command that runs a class of Apache Kafka's; its logs go to stderr."""
    return [
        require("java", "Apache Kafka needs Java 17"),
        *jvm_options,
        f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-cp",
        f"{jar_directory()}/*",
        class_name,
    ]


def run_tool(
    class_name: str,
    *arguments: str,
    input: str | None = None,  # noqa: A002  # subprocess.run's name
    timeout_s: float = 180,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command line tool of Apache Kafka's to its end. The class name may leave out `org.apache.kafka.tools.`"""
    if "." not in class_name:
        class_name = f"org.apache.kafka.tools.{class_name}"
    done = subprocess.run(
        [*java_command(class_name), *arguments],
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if check and done.returncode != 0:
        raise AssertionError(f"{class_name} {arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done


def dump_log_segments(files: Iterable[Path | str], *flags: str) -> subprocess.CompletedProcess[str]:
    """Apache Kafka's reader of log files, e.g. with --deep-iteration, --print-data-log, --cluster-metadata-decoder."""
    return run_tool("DumpLogSegments", "--files", ",".join(str(file) for file in files), *flags)


class ApacheKafka:
    """One combined node of Apache Kafka as a process."""

    name = "apache-kafka"

    def __init__(
        self,
        directory: Path,
        *,
        data_directory: Path | None = None,
        voters: Voters = "static",
        node_id: int = 1,
        cluster_id: str = "bWlsbHN0cmVhbS10ZXN0cw",
        heap: str = "512m",
        jvm_options: Iterable[str] = QUICK_START,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.data_directory = data_directory or directory / "data"
        self.voters: Voters = voters
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.log_path = directory / "server.log"
        self.properties_path = directory / "server.properties"
        self._jvm_options = (f"-Xmx{heap}", f"-Xms{heap}", *jvm_options)
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        self.properties = self._defaults() | dict(properties or {})
        listeners = dict(_name_and_address(each) for each in self.properties["listeners"].split(","))
        controller = self.properties["controller.listener.names"].split(",")[0]
        # A node of a larger cluster may have one of the two roles only.
        self.controller_bootstrap = listeners.pop(controller, "")
        self.bootstrap_servers = next(iter(listeners.values()), "")
        self._write_properties()

    @property
    def port(self) -> int:
        return int(self.bootstrap_servers.rpartition(":")[2])

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def _defaults(self) -> dict[str, str]:
        port, controller_port = free_ports(2)
        controller = f"127.0.0.1:{controller_port}"
        quorum = (
            {"controller.quorum.voters": f"{self.node_id}@{controller}"}
            if self.voters == "static"
            else {"controller.quorum.bootstrap.servers": controller}
        )
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            **quorum,
            "listeners": f"BROKER://127.0.0.1:{port},CONTROLLER://{controller}",
            "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "BROKER",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_directory),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }

    def _write_properties(self) -> None:
        self.properties_path.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))

    def format(self, *arguments: str) -> None:
        """Make the data directory an empty cluster of one."""
        quorum = () if self.voters == "static" else ("--standalone",)
        self.data_directory.mkdir(parents=True, exist_ok=True)
        command = (
            "format",
            "--cluster-id",
            self.cluster_id,
            "--config",
            str(self.properties_path),
            *quorum,
            *arguments,
        )
        run_tool("kafka.tools.StorageTool", *command, check=True)

    def launch(self) -> None:
        """Start the process without waiting for anything."""
        assert self._process is None, "already started"
        command = java_command("kafka.Kafka", jvm_options=self._jvm_options, log_level="info")
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, str(self.properties_path)], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def start(self, *, within_s: float = 180) -> None:
        """Start and wait until both listeners answer."""
        self.launch()
        try:
            wait_until(self._ready, "Apache Kafka to answer ApiVersions", within_s=within_s, every_s=0.05)
        except BaseException:
            self.kill()
            raise

    def _ready(self) -> bool:
        assert self._process is not None
        if (code := self._process.poll()) is not None:
            raise AssertionError(f"Apache Kafka ended with {code}:\n{self.log_tail()}")
        addresses = (self.bootstrap_servers, self.controller_bootstrap)
        return all(answers_api_versions(*_host_and_port(address)) for address in addresses if address)

    def log_tail(self, size: int = 4000) -> str:
        """The last words of the server's log."""
        return self.log_path.read_text(errors="replace")[-size:] if self.log_path.exists() else ""

    def stop(self, *, within_s: float = 120) -> None:
        """A clean stop: SIGTERM, then wait for the end."""
        self._end(signal.SIGTERM, within_s)

    def kill(self) -> None:
        """End it without a chance to tidy up: kill -9."""
        self._end(signal.SIGKILL, 30)

    def _end(self, how: signal.Signals, within_s: float) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
            raise

    def run_tool(
        self,
        class_name: str,
        *arguments: str,
        input: str | None = None,  # noqa: A002  # subprocess.run's name
        timeout_s: float = 180,
        check: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """As the function of the same name; addresses are up to the arguments."""
        return run_tool(class_name, *arguments, input=input, timeout_s=timeout_s, check=check)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def _name_and_address(listener: str) -> tuple[str, str]:
    name, _, address = listener.partition("://")
    return name, address


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
