"""A directory of Apache Kafka's goes through us and back unharmed: access rules, credentials, quotas and all.

Apache Kafka makes the directory and fills it. Our controller node opens it, leads the partitions for an epoch, and
writes a snapshot. Apache Kafka's own reader finds nothing wrong with any file, and Apache Kafka starts on it again and
shows what it showed before.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from typing import TYPE_CHECKING, NamedTuple, cast

import pytest

from millstream.broker.controller_node import ControllerNode, ControllerNodeConfig
from millstream.broker.kafka_properties import kafka_properties
from millstream.broker.metadata_replay import METADATA_DIRECTORY
from millstream.broker.storage_format import Storage, StorageLayout, StorageRefused, load_storage
from millstream.log.directory import LogDirectory
from millstream.metadata.image import Endpoint, MetadataImage
from tests.support.apache_kafka import ApacheKafka, Voters, dump_log_segments
from tests.support.metadata_node import NodePorts, joined, left, running_node
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECURED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
CONFIGS = "kafka.admin.ConfigCommand"
ONE_TOPIC = ("--create", "--topic", "orders", "--partitions", "3", "--config", "retention.ms=86400000")
BOB = ("--alter", "--entity-type", "users", "--entity-name", "bob", "--add-config")


def administer(kafka: ApacheKafka, tool: str, *arguments: str) -> list[str]:
    """What a tool prints, sorted: the order of maps in Java differs from run to run."""
    done = kafka.run_tool(tool, "--bootstrap-server", kafka.bootstrap_servers, *arguments, check=True)
    return sorted(done.stdout.splitlines())


def fill(kafka: ApacheKafka) -> None:
    administer(kafka, "TopicCommand", *ONE_TOPIC)
    rule = ("--allow-principal", "User:carol", "--operation", "Read", "--topic", "orders")
    administer(kafka, "AclCommand", "--add", *rule)
    administer(kafka, "AclCommand", "--add", "--deny-principal", "User:dave", "--operation", "All", "--cluster")
    administer(kafka, CONFIGS, *BOB, "SCRAM-SHA-512=[password=b]")
    administer(kafka, CONFIGS, *BOB, "producer_byte_rate=1024")
    everyone = ("--alter", "--entity-type", "clients", "--entity-default", "--add-config")
    administer(kafka, CONFIGS, *everyone, "consumer_byte_rate=99")


def seen_by_tools(kafka: ApacheKafka) -> dict[str, list[str]]:
    """What an administrator sees."""
    features = administer(kafka, "FeatureCommand", "describe")
    return {
        "acls": administer(kafka, "AclCommand", "--list"),
        "users": administer(kafka, CONFIGS, "--describe", "--entity-type", "users"),
        "clients": administer(kafka, CONFIGS, "--describe", "--entity-type", "clients", "--entity-default"),
        "topics": administer(kafka, "TopicCommand", "--describe"),
        "features": [re.sub(r"Epoch: \d+", "", line) for line in features],
    }


class Filled(NamedTuple):
    """Directories that Apache Kafka left: after a clean stop, and after kill -9."""

    kafka: ApacheKafka
    stopped: Path
    killed: Path
    seen: dict[str, list[str]]


@pytest.fixture(scope="module", params=["static", "dynamic"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    folder = tmp_path_factory.mktemp(f"filled-{request.param}")
    with ApacheKafka(folder / "kafka", voters=cast("Voters", request.param)) as kafka:
        kafka.properties |= SECURED
        kafka._write_properties()
        kafka.format()
        kafka.start()
        fill(kafka)
        seen = seen_by_tools(kafka)
        kafka.stop()
        shutil.copytree(kafka.data_directory, folder / "stopped")
        kafka.start()
        kafka.kill()
        yield Filled(kafka, folder / "stopped", kafka.data_directory, seen)


def on_a_copy(filled: Filled, folder: Path, *, stopped: bool) -> ApacheKafka:
    """Apache Kafka with the same settings, to be started on a copy of what it left."""
    data = folder / "data"
    shutil.copytree(filled.stopped if stopped else filled.killed, data)
    properties = filled.kafka.properties | {"log.dirs": str(data)}
    return ApacheKafka(folder / "kafka", data_directory=data, voters=filled.kafka.voters, properties=properties)


def node_config(kafka: ApacheKafka, storage: Storage, *, insecure: bool) -> ControllerNodeConfig:
    host, _, port = kafka.controller_bootstrap.rpartition(":")
    return ControllerNodeConfig(
        node_id=storage.node_id,
        metadata_log_dir=storage.layout.metadata_log_dir,
        directory_id=storage.metadata_directory_id,
        controller_endpoints=(Endpoint(name="CONTROLLER", host=host, port=int(port)),),
        bootstrap=storage.bootstrap,
        insecure=insecure,
    )


async def serve_for_a_while(kafka: ApacheKafka, *, cleanly: bool) -> MetadataImage:
    """Our node opens the directory, joins, snapshots and stops; or is gone without a word."""
    ports = NodePorts()
    directory = LogDirectory.open(ports.disk, str(kafka.data_directory), ports.clock, ports.random)
    storage = load_storage(ports, StorageLayout.of([directory.path]))
    node = await ControllerNode.start(ports, node_config(kafka, storage, insecure=True), pytest.fail)
    host, _, port = kafka.bootstrap_servers.rpartition(":")
    broker_epoch = await joined(
        node,
        endpoint=Endpoint(name="BROKER", host=host, port=int(port)),
        log_dirs=storage.log_dir_ids,
        clean_shutdown_epoch=directory.clean_broker_epoch,
    )
    image = node.image
    assert all(partition.leader == 1 for partition in image.topics.by_name["orders"].partitions.values())
    await node.snapshot()
    if cleanly:
        await left(node)
    await node.close()
    directory.close(broker_epoch) if cleanly else directory.let_go()
    ports.workers.close()
    return image


def dumped_records(directory: Path) -> list[str]:
    """Every metadata record that Apache Kafka's reader finds; it must find nothing to complain about."""
    folder = directory / METADATA_DIRECTORY
    files = sorted((*folder.glob("*.log"), *folder.glob("*.checkpoint")))
    done = dump_log_segments(files, "--cluster-metadata-decoder", "--print-data-log", "--deep-iteration")
    assert done.returncode == 0, done.stderr
    assert "isvalid: false" not in done.stdout
    assert "kipping" not in done.stdout + done.stderr
    assert "Error" not in done.stderr, done.stderr
    return [line.partition("payload: ")[2] for line in done.stdout.splitlines() if "payload: " in line]


@pytest.mark.parametrize("cleanly", [True, False], ids=["stopped", "killed"])
def test_what_apache_kafka_stored_is_what_it_finds_again(filled: Filled, tmp_path: Path, cleanly: bool) -> None:
    with on_a_copy(filled, tmp_path, stopped=cleanly) as kafka:
        image = asyncio.run(serve_for_a_while(kafka, cleanly=cleanly))
        assert (len(image.acls), len(image.scram), len(image.quotas)) == (2, 1, 2)
        types = {json.loads(record)["type"] for record in dumped_records(kafka.data_directory)}
        assert {"ACCESS_CONTROL_ENTRY_RECORD", "USER_SCRAM_CREDENTIAL_RECORD", "CLIENT_QUOTA_RECORD"} <= types
        kafka.start()
        assert seen_by_tools(kafka) == filled.seen
        kafka.stop()


def test_a_directory_with_access_rules_is_refused_and_not_touched(filled: Filled, tmp_path: Path) -> None:
    kafka = on_a_copy(filled, tmp_path, stopped=True)
    files = sorted(path for path in kafka.data_directory.rglob("*.log"))
    before = [path.read_bytes() for path in files]
    ports = NodePorts()
    storage = load_storage(ports, StorageLayout.of([str(kafka.data_directory)]))
    with pytest.raises(StorageRefused, match="access rules and SCRAM credentials"):
        asyncio.run(ControllerNode.start(ports, node_config(kafka, storage, insecure=False), pytest.fail))
    assert [path.read_bytes() for path in files] == before


@pytest.mark.parametrize("voters", ["static", "dynamic"])
def test_apache_kafka_starts_on_a_directory_that_we_formatted(tmp_path: Path, voters: Voters) -> None:
    data = tmp_path / "data"

    async def ours() -> None:
        async with running_node(data, static=voters == "static") as node:
            await joined(node)
            await left(node)

    asyncio.run(ours())
    broker_port, controller_port = free_ports(2)
    text = kafka_properties(NodePorts().disk, StorageLayout.of([str(data)]))
    text = text.replace(":9092", f":{broker_port}").replace(":9093", f":{controller_port}")
    properties = dict(line.split("=", 1) for line in text.splitlines())
    with ApacheKafka(tmp_path / "kafka", data_directory=data, voters=voters, properties=properties) as kafka:
        kafka.start()
        administer(kafka, "TopicCommand", "--create", "--topic", "made")
        kafka.stop()
    assert dumped_records(data)

    async def again() -> None:
        async with running_node(data) as node:
            assert "made" in node.image.topics.by_name
            await joined(node, clean_shutdown_epoch=node.image.brokers[1].epoch)
            assert node.image.topics.by_name["made"].partitions[0].leader == 1

    asyncio.run(again())
