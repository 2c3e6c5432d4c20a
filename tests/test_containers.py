"""Dockerfile and docker-compose.yml: read as an engine reads them, and their three environments as three processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.ports import free_ports
from tests.support.requirements import PROJECT_ROOT
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

COMPOSE = PROJECT_ROOT / "docker-compose.yml"
DOCKERFILE = PROJECT_ROOT / "Dockerfile"


def sections(text: str, indent: str) -> dict[str, list[str]]:
    """The keys at one depth, each with the lines below it: as much of YAML as our file uses."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key = re.match(rf"{indent}([A-Za-z0-9_<-]+):", line)
        if key:
            current = found.setdefault(key[1], [])
            line = line.partition(":")[2]
        current.append(line)
    return found


def environments() -> dict[str, dict[str, str]]:
    """The variables of every service, those that they share included."""
    top = sections(COMPOSE.read_text(), "")

    def variables(lines: list[str]) -> dict[str, str]:
        pairs = (line.strip().partition(": ") for line in lines if re.match(r"\s+[A-Z_]+: ", line))
        return {name: value.strip('"') for name, _, value in pairs}

    shared = variables(top["x-environment"])
    services = sections("\n".join(top["services"]), "  ")
    return {name: shared | variables(lines) for name, lines in services.items()}


def test_the_nodes_differ_where_they_must_and_agree_where_they_must() -> None:
    found = environments()
    assert list(found) == ["node-1", "node-2", "node-3"]
    assert [each["KAFKA_NODE_ID"] for each in found.values()] == ["1", "2", "3"]
    assert len({each["CLUSTER_ID"] for each in found.values()}) == 1
    voters = {each["KAFKA_CONTROLLER_QUORUM_VOTERS"] for each in found.values()}
    assert voters == {",".join(f"{each['KAFKA_NODE_ID']}@{name}:29092" for name, each in found.items())}


def test_the_ports_outside_are_those_that_clients_are_told() -> None:
    services = sections("\n".join(sections(COMPOSE.read_text(), "")["services"]), "  ")
    for number, (name, lines) in enumerate(services.items()):
        port = 9092 + number
        assert f'ports: ["{port}:{port}"]' in "\n".join(lines)
        told = environments()[name]["KAFKA_ADVERTISED_LISTENERS"]
        assert told == f"INTERNAL://{name}:19092,EXTERNAL://localhost:{port}"


def test_the_image_runs_as_nobody_special_and_keeps_no_compiler() -> None:
    lines = DOCKERFILE.read_text().splitlines()
    words = [line.split()[0] for line in lines if line and not line.startswith(("#", " "))]
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "VOLUME", "ENV", "EXPOSE", "ENTRYPOINT"}
    assert set(words) <= known
    last = lines[max(index for index, line in enumerate(lines) if line.startswith("FROM")) :]
    assert not any("gcc" in line for line in last)
    assert "USER millstream" in last
    assert last[-1] == 'ENTRYPOINT ["millstream", "broker"]'
    copied = [part for line in lines if line.startswith("COPY") and "--from" not in line for part in line.split()[1:-1]]
    assert all((PROJECT_ROOT / part).exists() for part in copied)


class Container:
    """One service as a process: its own environment, on loopback instead of a network of containers."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        directory.mkdir()
        self.output, self.log = directory / "out", directory / "log"
        path = os.pathsep.join(filter(None, (str(PROJECT_ROOT / "src"), os.environ.get("PYTHONPATH", ""))))
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": path, **environment}
        variables["KAFKA_LOG_DIRS"] = str(directory / "data")
        with self.output.open("wb") as output, self.log.open("wb") as log:
            command = [sys.executable, "-m", "millstream.cli.main", "broker"]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=log, env=variables)

    @property
    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        return self.output.read_text().startswith("ready: ")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)


def on_loopback(found: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """The same environments where every (host, port) is a free port of this machine."""
    ports: dict[tuple[str, str], int] = {}

    def port_of(host: str, port: str) -> str:
        if (host, port) not in ports:
            ports[host, port] = free_ports(1)[0]
        return f"127.0.0.1:{ports[host, port]}"

    def translate(name: str, value: str) -> str:
        value = re.sub(r"(node-\d):(\d+)", lambda at: port_of(at[1], at[2]), value)
        value = re.sub(r"localhost:(\d+)", lambda at: port_of(name, at[1]), value)
        return re.sub(r"://:(\d+)", lambda at: f"://{port_of(name, at[1])}", value)

    return {
        name: {key: translate(name, value) for key, value in variables.items()} for name, variables in found.items()
    }


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[dict[str, dict[str, str]]]:
    translated = on_loopback(environments())
    started = {name: Container(tmp_path / name, variables) for name, variables in translated.items()}
    try:
        wait_until(lambda: all(each.is_ready for each in started.values()), "three ready nodes", within_s=180)
        yield translated
        for each in started.values():
            each.stop()
        assert [each.process.wait(120) for each in started.values()] == [0, 0, 0]
    finally:
        for each in started.values():
            if each.process.poll() is None:
                each.process.kill()
                each.process.wait()


@pytest.mark.slow
def test_the_environments_make_a_cluster(containers: dict[str, dict[str, str]]) -> None:
    outside = [each["KAFKA_ADVERTISED_LISTENERS"].rpartition("://")[2] for each in containers.values()]
    admin = AdminClient({"bootstrap.servers": outside[1], "log_level": 0})
    admin.create_topics([NewTopic("orders", 3, 3)])["orders"].result(60)

    def brokers() -> list[str]:
        return sorted(f"{each.host}:{each.port}" for each in admin.list_topics(timeout=60).brokers.values())

    wait_until(lambda: brokers() == sorted(outside), "all three to be told of")
    producer = Producer({"bootstrap.servers": outside[2], "acks": "all", "log_level": 0})
    producer.produce("orders", b"shipped", partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": outside[0], "group.id": "g", "log_level": 0})
    try:
        consumer.assign([TopicPartition("orders", 0, 0)])
        message = consumer.poll(60)
        assert message is not None
        assert message.value() == b"shipped"
    finally:
        consumer.close()
