"""`millstream format` and `millstream kafka-properties`: directories before a start and on the way out."""

from __future__ import annotations

from millstream.cli.declare import Group, UsageError, argument, flag, option
from millstream.cli.output import Lines, Rows

FORMAT = Group("format", "Prepare a data directory.")
KAFKA_PROPERTIES = Group("kafka-properties", "The server.properties for Apache Kafka on our directory.")
GROUPS = {"format": FORMAT, "kafka-properties": KAFKA_PROPERTIES}


@FORMAT.command(
    "",
    argument("directories", "the log directories, the first for metadata; or --config names them", nargs="*"),
    option("--config", "-c", metavar="FILE", help="the node's server.properties"),
    option("--cluster-id", "-t", metavar="ID", help="22 characters of base64 (default: a fresh one)"),
    option("--node-id", type=int, help="this node's number (default: the one of --config, else 1)"),
    option("--controller", metavar="HOST:PORT", help="where this controller listens (default: localhost:9093)"),
    flag("--standalone", "-s", help="a quorum of this controller alone, which others may join later"),
    option(
        "--initial-controllers",
        "-I",
        metavar="LIST",
        help="the voters of a new quorum, the same for each of them: id@host:port:directory-id,...",
    ),
    flag("--no-initial-controllers", "-N", help="the node will find the voters by asking"),
    flag("--ignore-formatted", "-g", help="succeed where the directories are formatted already"),
    option("--json", action="store_true", help="print JSON"),
    offline=True,
    example="millstream format --cluster-id MkU3OEVBNTcwNTJENDM2Qg --config server.properties --standalone",
)
def format_(
    *,
    directories: list[str],
    config: str | None,
    cluster_id: str | None,
    node_id: int | None,
    controller: str | None,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    ignore_formatted: bool,
) -> Rows:
    """Prepare a node's directories: for a cluster of its own, or with --config for a place in a larger one."""
    from millstream.broker.formatting import FormatPlan, format_node
    from millstream.broker.storage_format import StorageRefused
    from millstream.cli.broker import host_and_port
    from millstream.cli.connect import read_properties
    from millstream.runtime.real import RealPorts
    from millstream.settings.declare import SettingsError

    ports = RealPorts()
    if not directories and config is None:
        raise UsageError("Name the directories, or a file with --config.")
    try:
        storage = format_node(
            ports,
            FormatPlan(
                directories=tuple(directories),
                properties={} if config is None else read_properties(config),
                cluster_id=checked_cluster_id(cluster_id) if cluster_id else str(ports.random.uuid()),
                node_id=node_id,
                controller=None if controller is None else host_and_port(controller),
                standalone=standalone or config is None,
                initial_controllers=initial_controllers,
                no_initial_controllers=no_initial_controllers,
                ignore_formatted=ignore_formatted,
            ),
        )
    except SettingsError as error:
        raise UsageError("\n".join(error.sentences)) from error
    except (StorageRefused, OSError) as error:
        raise UsageError(str(error)) from error
    rows = [(path, storage.cluster_id, storage.node_id, str(each)) for path, each in storage.directory_ids.items()]
    return Rows(("directory", "cluster_id", "node_id", "directory_id"), rows)


def checked_cluster_id(cluster_id: str) -> str:
    """The id, if it is one; the command line is refused otherwise."""
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
