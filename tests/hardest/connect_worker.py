"""A worker of Kafka Connect in distributed mode, and the REST calls that its users make."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Self

from tests.support.kafka_applications import JavaProcess, application_jars
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.running import RunningBroker

# Ask this machine itself, whatever proxies the environment names.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ConnectWorker:
    """One worker; several with the same broker make one Connect cluster."""

    def __init__(self, broker: RunningBroker, directory: Path, name: str) -> None:
        self.name = name
        (self._port,) = free_ports(1)
        folder = directory / name
        folder.mkdir()
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "connect-cluster",
            "listeners": f"http://127.0.0.1:{self._port}",
            "rest.advertised.host.name": "127.0.0.1",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "status.storage.topic": "connect-status",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "offset.storage.partitions": "3",
            "status.storage.partitions": "2",
            "offset.flush.interval.ms": "500",
            "exactly.once.source.support": "enabled",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
            # Tasks of a worker that is gone are given away at once, not after five minutes.
            "scheduled.rebalance.max.delay.ms": "0",
            "connector.client.config.override.policy": "All",
        }
        properties = folder / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.process = JavaProcess(
            "org.apache.kafka.connect.cli.ConnectDistributed",
            str(properties),
            log_path=folder / "worker.log",
            class_path=[f"{application_jars()}/*"],
        )

    def start(self) -> None:
        self.process.start()

    def ready(self, *, within_s: float = 180) -> None:
        """Wait until it has joined its group and answers."""
        wait_until(self._answers, f"{self.name} to be ready", within_s=within_s, every_s=0.1)

    def _answers(self) -> bool:
        self.process.assert_alive()
        try:
            self.ask("GET", "/connectors")
        except OSError:  # an HTTPError is one
            return False
        return True

    def ask(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """What the worker answers; HTTPError when it refuses."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with _OPENER.open(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def configure(self, connector: str, **settings: str) -> None:
        """Create or change a connector, trying again while the group rebalances (409)."""
        self._insist("PUT", f"/connectors/{connector}/config", settings)

    def remove(self, connector: str) -> None:
        self._insist("DELETE", f"/connectors/{connector}")

    def _insist(self, method: str, path: str, body: Mapping[str, str] | None = None) -> None:
        def accepted() -> bool:
            try:
                self.ask(method, path, body)
            except urllib.error.HTTPError as refusal:
                if method == "DELETE" and refusal.code == 404:
                    return True  # an earlier try was heard, and its answer was not
                if refusal.code not in (409, 500, 503):
                    raise AssertionError(refusal.read()) from refusal
                return False
            except OSError:
                return False
            return True

        wait_until(accepted, f"{method} {path} to be accepted", within_s=120, every_s=0.2)

    def connectors(self) -> list[str] | None:
        """Their names; None while the group rebalances."""
        try:
            return sorted(self.ask("GET", "/connectors"))
        except OSError:
            return None

    def status(self, connector: str) -> tuple[str, list[str]]:
        """State of the connector, and of its tasks."""
        try:
            said = self.ask("GET", f"/connectors/{connector}/status")
        except (OSError, urllib.error.HTTPError):
            return "UNKNOWN", []
        return said["connector"]["state"], [task["state"] for task in said["tasks"]]

    def runs(self, connector: str, *, within_s: float = 180) -> None:
        """Wait until the connector and its task run."""
        try:
            wait_until(
                lambda: self.status(connector) == ("RUNNING", ["RUNNING"]),
                f"{connector} to run",
                within_s=within_s,
                every_s=0.1,
            )
        except TimeoutError as late:
            raise AssertionError(f"{late}: {self.status(connector)}\n{self.process.said()[-6000:]}") from late

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
