"""`millstream broker`: run a broker in this process.

Settings come from a server.properties, KAFKA_* variables and `--set`, the later winning. `--listen` and `--data-dir`
are short for the two that everybody needs; the rest is `broker/process.py`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from millstream.cli.connect import key_value, read_properties
from millstream.cli.declare import Group, UsageError, argument, flag, option
from millstream.cli.output import Exit
from millstream.client.options import parse_address
from millstream.settings.declare import SettingsError
from millstream.settings.loading import from_environment, load

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUP = Group("broker", "Run a broker.")
GROUPS = {"broker": GROUP}

# Kafka's own default, /tmp/kafka-logs, is emptied by many systems.
DEFAULT_DATA_DIR = "millstream-data"
# As in Apache Kafka's own container image.
CLUSTER_ID_VARIABLE = "CLUSTER_ID"


@GROUP.command(
    "",
    argument("properties", "a server.properties", nargs="?"),
    option("--listen", "-l", metavar="HOST:PORT", help="for clients (default: localhost:9092); port 0 picks one"),
    option("--data-dir", "-d", metavar="DIR", help=f"where the log is kept (default: ./{DEFAULT_DATA_DIR})"),
    option("--set", "-s", repeat=True, metavar="NAME=VALUE", help="a setting, by Kafka's name"),
    option(
        "--cluster-id",
        metavar="ID",
        help=f"format an empty directory for this cluster, and refuse one of another (default: ${CLUSTER_ID_VARIABLE})",
    ),
    option("--metrics", metavar="HOST:PORT", help="serve Prometheus metrics and /health there"),
    flag("--insecure", help="open a directory with ACLs or credentials although nothing enforces them"),
    offline=True,
    example="millstream broker --listen localhost:9092 --data-dir ./data --set num.partitions=6",
)
def broker(
    *,
    properties: str | None,
    listen: str | None,
    data_dir: str | None,
    set: list[str],  # noqa: A002 - the option's name
    cluster_id: str | None,
    metrics: str | None,
    insecure: bool,
) -> Exit:
    """Run a broker until it is stopped."""
    file = {} if properties is None else read_properties(properties)
    options = dict(key_value(text) for text in set)
    environment = from_environment(os.environ)
    if listen is not None:
        host, port = host_and_port(listen)
        file.pop("advertised.listeners", None)
        bracketed = f"[{host}]" if ":" in host else host  # an IPv6 address
        options["listeners"] = _listeners(f"PLAINTEXT://{bracketed}:{port}", {**file, **environment, **options})
    if data_dir is not None:
        options["log.dirs"] = data_dir
    elif not {"log.dirs", "log.dir"} & (file.keys() | options.keys() | environment.keys()):
        options["log.dirs"] = DEFAULT_DATA_DIR
    known = {**file, **environment, **options}
    # A node that is only a controller has no listener for clients; which one it lacks, its settings say.
    if listen is None and "listeners" not in known and known.get("process.roles", "").strip() != "controller":
        options["listeners"] = "PLAINTEXT://localhost:9092"
    if insecure:
        options["millstream.insecure"] = "true"
    return Exit(run_broker(file, options, metrics=metrics, cluster_id=cluster_id))


def run_broker(
    file: dict[str, str], options: dict[str, str], *, metrics: str | None = None, cluster_id: str | None = None
) -> int:
    try:
        loaded = load(file, environment=os.environ, options=options)
    except SettingsError as error:
        raise UsageError("\n".join(error.sentences)) from error
    served = None if metrics is None else host_and_port(metrics)
    cluster_id = cluster_id or os.environ.get(CLUSTER_ID_VARIABLE) or None
    if cluster_id is not None:
        from millstream.cli.storage import checked_cluster_id

        checked_cluster_id(cluster_id)
    from millstream.broker.process import run

    return run(loaded, metrics=served, cluster_id=cluster_id)


def host_and_port(text: str) -> tuple[str, int]:
    """`host:port`, `:port` for every interface, and port 0 for any free one."""
    host, colon, port = text.rpartition(":")
    if colon and port == "0":
        return host.strip("[]"), 0
    if text.startswith(":") and port.isdecimal():
        return "", int(port)
    address = parse_address(text)
    return address.host, address.port


def _listeners(broker_listener: str, known: dict[str, str]) -> str:
    """What `--listen` says, and beside it the controller listeners of the file."""
    controllers = [name.strip() for name in known.get("controller.listener.names", "").split(",") if name.strip()]
    kept = [
        listener.strip()
        for listener in known.get("listeners", "").split(",")
        if listener.strip().partition("://")[0] in controllers
    ]
    return ",".join((broker_listener, *kept))


def overrides(words: Sequence[str]) -> dict[str, str]:
    """`--override name=value ...` of kafka-server-start."""
    return dict(key_value(word) for word in words)
