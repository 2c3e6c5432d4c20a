"""How each client is started as a member, and how to read what it prints."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import toolchains
from tests.support.apache_kafka import java_command
from tests.support.requirements import PROJECT_ROOT

if TYPE_CHECKING:
    from tests.clients.members.member import Place

HERE = Path(__file__).parent
Command = tuple[list[str], dict[str, str]]
Topics = tuple[str, ...]

JAVA_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
SESSION_MS = 6_000
HEARTBEAT_MS = 500


class Program:
    """A program in a language of its own that speaks our JSON lines. A topic that starts with ^ is a pattern."""

    name: str
    strategies: frozenset[str] = frozenset({"range", "cooperative-sticky"})
    patterns = True
    static = True
    leaves_by_signal = False
    outlives_the_broker = True
    needs_java = False

    def start(self) -> Command:
        raise NotImplementedError

    def command(self, servers: str, group: str, topics: Topics, strategy: str, instance_id: str | None) -> Command:
        command, environment = self.start()
        return [*command, servers, group, ",".join(topics), strategy, instance_id or ""], environment

    def parse(self, line: str, owned: frozenset[Place] | None) -> dict[str, Any] | None:
        """What a line says: {"owned": …} or {"reads": …}; None if it is something else."""
        if not line.startswith("{"):
            return None
        event: dict[str, Any] = json.loads(line)
        return {"reads": [event["read"]]} if "read" in event else event


class _Python(Program):
    script: str

    def start(self) -> Command:
        return [sys.executable, "-u", str(HERE / self.script)], {
            "PYTHONPATH": str(PROJECT_ROOT),
            "PYTHONWARNINGS": "ignore",
        }


class Confluent(_Python):
    name = "confluent-kafka"
    script = "confluent_member.py"


class KafkaPython(_Python):
    name = "kafka-python"
    script = "kafka_python_member.py"
    strategies = frozenset({"range", "cooperative-sticky"})


class Aiokafka(_Python):
    name = "aiokafka"
    script = "aiokafka_member.py"
    strategies = frozenset({"range"})


class KafkaJs(Program):
    """Its patterns are looked up once, when it subscribes; it has one assignor, of its own name."""

    name = "kafkajs"
    strategies = frozenset({"range"})
    patterns = False
    static = False

    def start(self) -> Command:
        node, environment = toolchains.kafkajs()
        return [node, str(HERE / "kafkajs_member.js")], environment


class FranzGo(Program):
    name = "franz-go"

    def start(self) -> Command:
        return [str(toolchains.go_program(HERE / "franz_go_member.go"))], {}


class Kcat(Program):
    """`kcat -G`: records as JSON, rebalances as sentences."""

    name = "kcat"
    # Version 1.7 calls the plain assign and unassign, whatever the strategy asks for.
    strategies = frozenset({"range"})
    leaves_by_signal = True
    # It ends when all brokers are gone.
    outlives_the_broker = False
    _rebalanced = re.compile(r"% Group .* rebalanced \(.*\): (assigned|revoked): ?(.*)")
    _place = re.compile(r"(\S+) \[(\d+)\]")

    def command(self, servers: str, group: str, topics: Topics, strategy: str, instance_id: str | None) -> Command:
        program, environment = toolchains.kcat()
        settings = {
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "auto.commit.interval.ms": 200,
            "topic.metadata.refresh.interval.ms": 500,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": strategy,
        }
        if instance_id is not None:
            settings["group.instance.id"] = instance_id
        flags = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
        return [program, "-b", servers, *flags, "-J", "-u", "-G", group, *topics], environment

    def parse(self, line: str, owned: frozenset[Place] | None) -> dict[str, Any] | None:
        if line.startswith("{"):
            seen = json.loads(line)
            return {"reads": [(seen["topic"], seen["partition"], seen["offset"], seen["payload"])]}
        if found := self._rebalanced.match(line):
            places = [(topic, int(partition)) for topic, partition in self._place.findall(found[2])]
            return {"owned": places if found[1] == "assigned" else []}
        return None


class Java(Program):
    """Apache Kafka's VerifiableConsumer."""

    name = "java"
    patterns = False
    leaves_by_signal = True
    needs_java = True

    def command(self, servers: str, group: str, topics: Topics, strategy: str, instance_id: str | None) -> Command:
        (topic,) = topics
        command = java_command("org.apache.kafka.tools.VerifiableConsumer")
        arguments = ["--bootstrap-server", servers, "--group-id", group, "--topic", topic, "--reset-policy", "earliest"]
        arguments += ["--session-timeout", str(SESSION_MS), "--group-protocol", "classic", "--verbose"]
        arguments += ["--assignment-strategy", JAVA_ASSIGNORS[strategy], "--enable-autocommit"]
        arguments += ["--command-config", str(HERE / "java_member.properties")]
        if instance_id is not None:
            arguments += ["--group-instance-id", instance_id]
        return [*command, *arguments], {}

    def parse(self, line: str, owned: frozenset[Place] | None) -> dict[str, Any] | None:
        if not line.startswith("{"):
            return None
        event = json.loads(line)
        places = {(each["topic"], each["partition"]) for each in event.get("partitions", []) if "topic" in each}
        match event["name"]:
            case "partitions_assigned":
                return {"owned": sorted((owned or frozenset()) | places)}
            case "partitions_revoked":
                return {"owned": sorted((owned or frozenset()) - places)}
            case "record_data":
                return {"reads": [(event["topic"], event["partition"], event["offset"], event["value"])]}
            case _:
                return None


ALL_PROGRAMS: tuple[Program, ...] = (
    Confluent(),
    KafkaPython(),
    Aiokafka(),
    KafkaJs(),
    FranzGo(),
    Kcat(),
    Java(),
)
