"""`millstream format` and `millstream kafka-properties`: directories before a start and on the way out."""

from __future__ import annotations

from millstream.cli.declare import Group, UsageError, argument, option
from millstream.cli.output import Lines, Rows

FORMAT = Group("format", "Prepare a data directory.")
KAFKA_PROPERTIES = Group("kafka-properties", "The server.properties for Apache Kafka on our directory.")
GROUPS = {"format": FORMAT, "kafka-properties": KAFKA_PROPERTIES}


@FORMAT.command(
    "",
    argument("directories", "the log directories; the first holds the metadata log", nargs="+"),
    option("--cluster-id", "-t", metavar="ID", help="22 characters of base64 (default: a fresh one)"),
    option("--node-id", type=int, default=1, help="this node's number (default: 1)"),
    option("--controller", metavar="HOST:PORT", help="where this controller listens (default: localhost:9093)"),
    option("--json", action="store_true", help="print JSON"),
    offline=True,
    example="millstream format ./data --cluster-id MkU3OEVBNTcwNTJENDM2Qg",
)
def format_(*, directories: list[str], cluster_id: str | None, node_id: int, controller: str | None) -> Rows:
    """Make empty directories a cluster of one, with a known cluster id."""
    from millstream.broker.storage_format import StorageLayout, StorageRefused, format_storage
    from millstream.cli.broker import host_and_port
    from millstream.quorum.voters import VoterEndpoint
    from millstream.runtime.real import RealPorts

    ports = RealPorts()
    host, port = host_and_port(controller or "localhost:9093")
    try:
        storage = format_storage(
            ports,
            StorageLayout.of(directories),
            cluster_id=_checked(cluster_id) if cluster_id else str(ports.random.uuid()),
            node_id=node_id,
            controller_endpoint=VoterEndpoint("CONTROLLER", host, port),
        )
    except (StorageRefused, OSError) as error:
        raise UsageError(str(error)) from error
    rows = [(path, storage.cluster_id, node_id, str(each)) for path, each in storage.directory_ids.items()]
    return Rows(("directory", "cluster_id", "node_id", "directory_id"), rows)


def _checked(cluster_id: str) -> str:
    from millstream.protocol.uuid import Uuid

    try:
        Uuid.parse(cluster_id)
    except ValueError as error:
        raise UsageError(f"--cluster-id: {error}") from error
    return cluster_id


@KAFKA_PROPERTIES.command(
    "",
    argument("directories", "the log directories; the first holds the metadata log", nargs="+"),
    offline=True,
    example="millstream kafka-properties ./data > server.properties",
)
def kafka_properties_(*, directories: list[str]) -> Lines:
    """Print the server.properties with which Apache Kafka takes over."""
    import os

    from millstream.broker.kafka_properties import kafka_properties
    from millstream.broker.storage_format import StorageLayout, StorageRefused
    from millstream.runtime.real import RealDisk

    # Apache Kafka will be started from anywhere, so the paths must not depend on where we are.
    layout = StorageLayout.of([os.path.abspath(path) for path in directories])
    try:
        text = kafka_properties(RealDisk(), layout)
    except (StorageRefused, OSError) as error:
        raise UsageError(str(error)) from error
    return Lines(iter((text.encode(),)))
