"""`millstream format`: what a node's directories need to know before its first start, as kafka-storage decides it.

A node that is alone formats itself. Nodes of a larger cluster cannot: three that did would make three clusters. With
fixed voters (`controller.quorum.voters`) a cluster id is all they share. The voters of a dynamic quorum stand in its
log: the first ones are written by formatting, either one (`--standalone`) or several, each with the id of its
directory (`--initial-controllers`). A controller that joins later, and every broker, is formatted without.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.broker.storage_format import (
    Storage,
    StorageLayout,
    StorageRefused,
    format_storage,
    load_storage,
)
from millstream.protocol.uuid import Uuid
from millstream.quorum.voters import Voter, VoterEndpoint, VoterSet
from millstream.settings import (
    CONTROLLER_LISTENER_NAMES,
    LOG_DIR,
    LOG_DIRS,
    METADATA_LOG_DIR,
    NODE_ID,
    PROCESS_ROLES,
)
from millstream.settings.listeners import Endpoints, quorum_voters
from millstream.settings.loading import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.runtime.ports import Ports
    from millstream.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatPlan:
    """What the command line says."""

    cluster_id: str
    directories: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    node_id: int | None = None
    controller: tuple[str, int] | None = None
    standalone: bool = False
    initial_controllers: str | None = None
    no_initial_controllers: bool = False
    ignore_formatted: bool = False


def format_node(ports: Ports, plan: FormatPlan) -> Storage:
    """Format, or say in a sentence why not."""
    options = {} if plan.node_id is None else {"node.id": str(plan.node_id)}
    settings = load(dict(plan.properties), options=options).settings
    layout = _layout(settings, plan)
    node_id = settings[NODE_ID]
    if plan.ignore_formatted:
        try:
            return load_storage(ports, layout, node_id=node_id, cluster_id=plan.cluster_id)
        except StorageRefused:
            pass  # formatting says what is wrong, if anything is
    endpoint, voters = _first_voters(settings, plan)
    return format_storage(
        ports,
        layout,
        cluster_id=plan.cluster_id,
        node_id=node_id,
        controller_endpoint=endpoint,
        initial_voters=voters,
    )


def _layout(settings: Settings, plan: FormatPlan) -> StorageLayout:
    if plan.directories:
        return StorageLayout.of(plan.directories, settings[METADATA_LOG_DIR])
    several = settings[LOG_DIRS]
    return StorageLayout.of(several or settings[LOG_DIR], settings[METADATA_LOG_DIR])


def _first_voters(settings: Settings, plan: FormatPlan) -> tuple[VoterEndpoint | None, VoterSet | None]:
    """This controller alone, or several, or none of either."""
    chosen = [
        name
        for name, is_chosen in (
            ("--standalone", plan.standalone),
            ("--initial-controllers", plan.initial_controllers is not None),
            ("--no-initial-controllers", plan.no_initial_controllers),
        )
        if is_chosen
    ]
    if len(chosen) > 1:
        raise StorageRefused(f"{chosen[0]} and {chosen[1]} cannot both be.")
    is_controller = "controller" in settings[PROCESS_ROLES]
    if quorum_voters(settings):
        if chosen:
            raise StorageRefused(f"The voters are fixed by controller.quorum.voters: {chosen[0]} is for others.")
        return None, None
    if not is_controller:
        if chosen and not plan.no_initial_controllers:
            raise StorageRefused(f"{chosen[0]} is for controllers, and this node is only a broker.")
        return None, None
    if plan.initial_controllers is not None:
        return None, _checked(parse_controllers(plan.initial_controllers, _listener_name(settings)), settings[NODE_ID])
    if plan.standalone:
        return _own_endpoint(settings, plan), None
    if plan.no_initial_controllers:
        return None, None
    raise StorageRefused(
        "A controller without controller.quorum.voters needs one of --standalone, --initial-controllers "
        "and --no-initial-controllers."
    )


def _listener_name(settings: Settings) -> str:
    return settings[CONTROLLER_LISTENER_NAMES][0].upper()


def _own_endpoint(settings: Settings, plan: FormatPlan) -> VoterEndpoint:
    name = _listener_name(settings)
    if plan.controller is not None:
        return VoterEndpoint(name, *plan.controller)
    endpoints = Endpoints.of(settings)
    for endpoint in (*endpoints.advertised_controller, *endpoints.controller):
        if endpoint.listener == name:
            return VoterEndpoint(name, endpoint.host or "localhost", endpoint.port)
    return VoterEndpoint(name, "localhost", 9093)


def parse_controllers(text: str, listener: str) -> VoterSet:
    """`id@host:port:directory-id`, several with commas between them."""
    voters = []
    for entry in text.split(","):
        number, at, rest = entry.strip().partition("@")
        address, colon, directory_id = rest.rpartition(":")
        host, colon_before_port, port = address.rpartition(":")
        if not (at and colon and colon_before_port and number.isdecimal() and port.isdecimal()):
            raise StorageRefused(f"--initial-controllers has {entry!r}: it takes id@host:port:directory-id.")
        try:
            directory = Uuid.parse(directory_id)
        except ValueError as error:
            raise StorageRefused(f"--initial-controllers has {entry!r}: {error}.") from error
        endpoint = VoterEndpoint(listener, host.strip("[]"), int(port))
        voters.append(Voter(int(number), directory, (endpoint,)))
    return VoterSet(tuple(voters))


def _checked(voters: VoterSet, node_id: int) -> VoterSet:
    if voters.find(node_id) is None:
        raise StorageRefused(f"--initial-controllers does not name node {node_id}; a later one uses -N.")
    if len(dict.fromkeys(voters.ids())) != len(voters):
        raise StorageRefused("--initial-controllers names a node twice.")
    if len(dict.fromkeys(voter.directory_id for voter in voters)) != len(voters):
        raise StorageRefused("--initial-controllers names a directory twice.")
    return voters
