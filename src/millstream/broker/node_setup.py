"""What a node is, read from its settings: its addresses, its directories, its place in the metadata quorum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from millstream.broker.controller_node import ControllerNodeConfig
from millstream.broker.meta_properties import META_PROPERTIES
from millstream.broker.metadata_log import MetadataLogConfig
from millstream.broker.quorum_config import QuorumConfig
from millstream.broker.storage_format import NotFormatted, Storage, StorageLayout, load_storage, open_storage
from millstream.log.directory import LIMITS, LogDirectory
from millstream.metadata.image import Endpoint
from millstream.quorum.voters import VoterEndpoint
from millstream.runtime.logs import Logger
from millstream.settings import (
    METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS,
    METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS,
    METADATA_LOG_SEGMENT_BYTES,
    METADATA_LOG_SEGMENT_MS,
    METADATA_MAX_RETENTION_BYTES,
    METADATA_MAX_RETENTION_MS,
    MILLSTREAM_INSECURE,
    MIN_INSYNC_REPLICAS,
    NODE_ID,
    PROCESS_ROLES,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)
from millstream.settings.listeners import SECURITY_PROTOCOLS, bootstrap_servers, quorum_voters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.broker.listeners import Listener
    from millstream.broker.node import Node
    from millstream.runtime.ports import Ports
    from millstream.settings import Settings
    from millstream.settings.listeners import Endpoints

_log = Logger("millstream.node")
_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  # nothing is bound here
_HOW_TO_FORMAT = "Nodes of one cluster are formatted with one id: see `millstream format --help`, or use --cluster-id."


def registered_endpoints(
    endpoints: Endpoints, listeners: Iterable[Listener], *, controller: bool
) -> tuple[Endpoint, ...]:
    """What is written into the metadata: the advertised address, or the one that is listened on."""
    told_to_others = endpoints.advertised_controller if controller else endpoints.advertised
    advertised = {endpoint.listener: endpoint for endpoint in told_to_others}
    found = []
    for listener in listeners:
        if listener.is_controller == controller:
            told = advertised.get(listener.name)
            protocol = endpoints.security_protocols[listener.name]
            found.append(
                Endpoint(
                    name=listener.name,
                    host=told.host if told else listener.host or "localhost",
                    port=told.port if told else listener.port,
                    security_protocol=SECURITY_PROTOCOLS[protocol],
                )
            )
    return tuple(found)


def controller_endpoints(node: Node) -> tuple[Endpoint, ...]:
    """Where other nodes find this controller. One that listens on all addresses and advertises none is found by what
    the fixed voters are told: that, and no `localhost`, is what a dynamic quorum shall begin with one day."""
    found = registered_endpoints(node.endpoints, node.listeners, controller=True)
    listens_on = next((listener.host for listener in node.listeners if listener.is_controller), None)
    known = {voter.id: voter for voter in quorum_voters(node.settings)}.get(node.node_id)
    if known is None or node.endpoints.advertised_controller or listens_on not in _EVERYWHERE:
        return found
    return (msgspec.structs.replace(found[0], host=known.host, port=known.port or found[0].port), *found[1:])


def voter_endpoint(settings: Settings, endpoints: Endpoints, listeners: Iterable[Listener]) -> VoterEndpoint | None:
    """Where other controllers reach this one; None where the voters are fixed by a setting, or it is none."""
    if quorum_voters(settings) or "controller" not in settings[PROCESS_ROLES]:
        return None
    for endpoint in registered_endpoints(endpoints, listeners, controller=True):
        return VoterEndpoint(endpoint.name, endpoint.host, endpoint.port)
    return VoterEndpoint(endpoints.controller_names[0], "localhost", 9093)


def is_whole_quorum(settings: Settings) -> bool:
    """Whether the settings make this node a quorum of its own: only such a node formats empty directories itself.

    Three nodes with empty directories that format themselves would make three clusters.
    """
    if "controller" not in settings[PROCESS_ROLES]:
        return False
    others = [voter.id for voter in quorum_voters(settings) if voter.id != settings[NODE_ID]]
    return not others and len(bootstrap_servers(settings)) <= 1


def open_directories(ports: Ports, layout: StorageLayout, held: list[LogDirectory]) -> dict[str, LogDirectory]:
    """The directories by path; those that this node holds from now on go into `held` one by one.

    One that fails is left out, as in Kafka, where the node can do without it: not that of the metadata, not the last,
    and not in a node that was never formatted. One that another process holds is a mistake and no failure.
    """
    found: dict[str, LogDirectory] = {}
    for path in layout.all_dirs:
        try:
            found[path] = LogDirectory.open(ports.disk, path, ports.clock, ports.random)
            held.append(found[path])
        except BlockingIOError:
            raise
        except OSError as error:
            main = layout.metadata_log_dir
            if path == main or error.errno in LIMITS or not ports.disk.exists(f"{main}/{META_PROPERTIES}"):
                raise
            _log.error("a log directory cannot be opened; the node starts without it", directory=path, error=str(error))
            found[path] = LogDirectory.unreadable(ports.disk, path, ports.clock, ports.random, error)
    for path in layout.log_dirs:
        if found[path].failure is None:
            return found
    failure = found[layout.log_dirs[0]].failure
    assert failure is not None
    raise failure


def readable_layout(layout: StorageLayout, directories: Mapping[str, LogDirectory]) -> StorageLayout:
    """Without those directories that could not be opened."""
    return StorageLayout(
        tuple(path for path in layout.log_dirs if directories[path].was_opened), layout.metadata_log_dir
    )


def open_node_storage(node: Node, layout: StorageLayout, cluster_id: str | None) -> Storage:
    """The node's directories. With a `cluster_id`, empty ones are formatted for that cluster, others must be of it."""
    endpoint = voter_endpoint(node.settings, node.endpoints, node.listeners)
    if not is_whole_quorum(node.settings) and (cluster_id is None or endpoint is not None):
        # Who votes in a dynamic quorum of several is said when its directories are formatted.
        try:
            return load_storage(node.ports, layout, node_id=node.node_id, cluster_id=cluster_id)
        except NotFormatted as refusal:
            raise NotFormatted(f"{refusal} {_HOW_TO_FORMAT}") from refusal
    return open_storage(node.ports, layout, node_id=node.node_id, cluster_id=cluster_id, controller_endpoint=endpoint)


def controller_config(node: Node) -> ControllerNodeConfig:
    """Who the node is in the metadata quorum, and where its metadata lives."""
    settings = node.settings
    return ControllerNodeConfig(
        node_id=node.node_id,
        metadata_log_dir=node.storage.layout.metadata_log_dir,
        directory_id=node.storage.metadata_directory_id,
        controller_endpoints=controller_endpoints(node),
        cluster_id=node.cluster_id,
        quorum=QuorumConfig.of(settings),
        bootstrap=node.storage.bootstrap,
        min_insync_replicas=settings[MIN_INSYNC_REPLICAS],
        unclean_elections=settings[UNCLEAN_LEADER_ELECTION_ENABLE],
        insecure=settings[MILLSTREAM_INSECURE],
        log=MetadataLogConfig(
            segment_bytes=settings[METADATA_LOG_SEGMENT_BYTES],
            segment_ms=settings[METADATA_LOG_SEGMENT_MS],
            record_bytes_between_snapshots_max=settings[METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS],
            snapshot_interval_max_ms=settings[METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS],
            retention_bytes_max=settings[METADATA_MAX_RETENTION_BYTES],
            retention_ms_max=settings[METADATA_MAX_RETENTION_MS],
        ),
    )
