"""Apache Kafka and we describe the same settings in the same way: value, source, chain of synonyms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from millstream.settings import BROKER, TOPIC, Settings, Synonym, parse_properties, topic_settings
from millstream.settings.effective import ConfigSource
from tests.support.apache_kafka import ApacheKafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.settings import Setting

pytestmark = [pytest.mark.java, pytest.mark.slow]

STATIC = {
    "log.retention.hours": "24",
    "log.roll.ms": "3600000",
    "log.roll.hours": "3",
    "log.flush.scheduler.interval.ms": "9000",
    "compression.type": "zstd",
    "log.cleaner.min.cleanable.ratio": "0.25",
    "ssl.key.password": "hunter2",
    "max.connections": "500",
    "delete.topic.enable": "TRUE",
}
CLUSTER = {"message.max.bytes": "2000000", "log.retention.bytes": "5000000", "log.segment.bytes": "2000000"}
BROKER_ONLY = {"log.segment.bytes": "3000000"}
OF_TOPIC = {"segment.bytes": "4000000", "cleanup.policy": "compact,delete", "min.insync.replicas": "1"}
# What Kafka fills in for itself: addresses, and defaults that we chose otherwise.
OWN_MATTERS = {"advertised.listeners", "log.dir", "queued.max.request.bytes"}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with ApacheKafka(tmp_path_factory.mktemp("described"), properties=STATIC) as kafka:
        kafka.format()
        kafka.start()
        configs = [word for name, value in OF_TOPIC.items() for word in ("--config", f"{name}={value}")]
        server = ("--bootstrap-server", kafka.bootstrap_servers)
        kafka.run_tool("TopicCommand", *server, "--create", "--topic", "orders", *configs, check=True)
        for entity, values in (("--entity-default", CLUSTER), (f"--entity-name={kafka.node_id}", BROKER_ONLY)):
            added = ",".join(f"{name}={value}" for name, value in values.items())
            arguments = (*server, "--alter", "--entity-type", "brokers", entity, "--add-config", added)
            kafka.run_tool("kafka.admin.ConfigCommand", *arguments, check=True)
        yield kafka
        kafka.stop()


def described(kafka: ApacheKafka, entity_type: str, name: str) -> dict[str, tuple[str | None, tuple[Synonym, ...]]]:
    """What `kafka-configs --describe --all` prints."""
    done = kafka.run_tool(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", kafka.bootstrap_servers, "--describe", "--all"),
        *("--entity-type", entity_type, "--entity-name", name),
        check=True,
    )
    found = {}
    for line in done.stdout.splitlines():
        matched = re.fullmatch(r"  ([a-z0-9.]+)=(.*?) sensitive=(true|false) synonyms=\{(.*)\}", line)
        if matched:
            value = None if matched[2] == "null" else matched[2]
            chain = re.findall(r"([A-Z_]+_CONFIG):([a-z0-9.]+)=(.*?)(?=, [A-Z_]+_CONFIG:|$)", matched[4])
            found[matched[1]] = (
                value,
                tuple(
                    Synonym(n, None if v == "null" else v, ConfigSource[source.replace("DYNAMIC_TOPIC", "TOPIC")])
                    for source, n, v in chain
                ),
            )
    return found


def ours(settings: Settings, declared: dict[str, Setting[object]]) -> dict[str, tuple[str | None, tuple[Synonym, ...]]]:
    return {
        name: (settings.text_of(setting), settings.synonyms_of(setting))
        for name, setting in declared.items()
        if not setting.internal and not setting.own
    }


def broker_settings(kafka: ApacheKafka) -> Settings:
    static = parse_properties(kafka.properties_path.read_text())
    # Formatting with eligible leader replicas turned on writes the cluster's min.insync.replicas down.
    cluster = {**CLUSTER, "min.insync.replicas": "1"}
    return Settings({"broker.id": static["node.id"], **static}, cluster=cluster, broker=BROKER_ONLY)


def test_a_topic_is_described_as_apache_kafka_describes_it(kafka: ApacheKafka) -> None:
    theirs = described(kafka, "topics", "orders")
    assert ours(topic_settings(broker_settings(kafka), OF_TOPIC), dict(TOPIC)) == theirs


def test_a_broker_is_described_as_apache_kafka_describes_it(kafka: ApacheKafka) -> None:
    theirs = described(kafka, "brokers", str(kafka.node_id))
    mine = ours(broker_settings(kafka), dict(BROKER))
    assert {name for name in mine if name not in theirs} == {name for name in mine if BROKER[name].dynamic_only}
    same = {name for name in theirs if name not in OWN_MATTERS and not BROKER[name].differs}
    assert {name: mine[name] for name in same} == {name: theirs[name] for name in same}
