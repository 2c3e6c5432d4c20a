"""The server.properties with which Apache Kafka takes over a directory: `millstream kafka-properties DIR`.

All of it is read from the directory: who the node is, where it listened, whether its quorum is static or dynamic, and
where the other controllers are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from millstream.broker.meta_properties import read_meta_properties
from millstream.broker.metadata_replay import METADATA_DIRECTORY, read_metadata
from millstream.broker.storage_format import NotFormatted, StorageLayout
from millstream.metadata.image import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.broker.metadata_replay import ReplayedMetadata
    from millstream.runtime.ports import Disk

SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
# A node that was formatted and never started has not registered anything.
DEFAULT_BROKER = Endpoint(name="PLAINTEXT", host="localhost", port=9092)
DEFAULT_CONTROLLER = Endpoint(name="CONTROLLER", host="localhost", port=9093)


def kafka_properties(disk: Disk, layout: StorageLayout) -> str:
    """The text of the file. Nothing in the directory is opened for writing, locked or repaired."""
    properties = read_meta_properties(disk, layout.metadata_log_dir)
    if properties is None:
        raise NotFormatted(f"{layout.metadata_log_dir} is not formatted.")
    found = read_metadata(disk, f"{layout.metadata_log_dir}/{METADATA_DIRECTORY}")
    node_id = properties.node_id
    roles = _roles(found, node_id)
    brokers = _broker_endpoints(found, node_id)
    controllers = _apart(_controller_endpoints(found, node_id), brokers)
    listening = {"broker": brokers, "controller": controllers}
    listeners = [endpoint for role in roles for endpoint in listening[role]]
    lines = [
        f"process.roles={','.join(roles)}",
        f"node.id={node_id}",
        f"listeners={_listeners(listeners)}",
        *([f"inter.broker.listener.name={brokers[0].name}"] if "broker" in roles else []),
        f"controller.listener.names={','.join(endpoint.name for endpoint in controllers)}",
        f"listener.security.protocol.map={_protocols((*brokers, *controllers))}",
        f"log.dirs={','.join(layout.log_dirs)}",
    ]
    if layout.metadata_log_dir != layout.log_dirs[0]:
        lines.append(f"metadata.log.dir={layout.metadata_log_dir}")
    lines.append(_quorum(found, {node_id: controllers[0]} if "controller" in roles else {}))
    if len(found.image.brokers) <= 1:
        lines += [f"{name}=1" for name in _SINGLE_NODE]
    if found.image.acls:
        lines += [
            "# The cluster holds access rules. Name the administrators, then let them be enforced:",
            "# super.users=User:admin",
            "# authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        ]
    return "".join(f"{line}\n" for line in lines)


# Internal topics ask for three replicas unless told otherwise.
_SINGLE_NODE = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)


def _roles(found: ReplayedMetadata, node_id: int) -> list[str]:
    """As the node has registered; a node that never ran may become both."""
    is_controller = node_id in found.image.controllers or (
        found.voters is not None and found.voters.find(node_id) is not None
    )
    is_broker = node_id in found.image.brokers
    roles = [role for role, is_it in (("broker", is_broker), ("controller", is_controller)) if is_it]
    return roles if roles and (is_broker or found.image.controllers) else ["broker", "controller"]


def _quorum(found: ReplayedMetadata, own: Mapping[int, Endpoint]) -> str:
    """Where the controllers are. All that registered vote where voters are fixed: no others are let in there."""
    others = {id_: each.endpoints[0] for id_, each in found.image.controllers.items() if each.endpoints}
    if found.voters is None:
        known = sorted({**others, **own}.items())
        return "controller.quorum.voters=" + ",".join(f"{id_}@{at.host}:{at.port}" for id_, at in known)
    voters = {voter.id: others[voter.id] for voter in found.voters if voter.id in others}
    known = [*own.items(), *(each for each in voters.items() if each[0] not in own)]
    return "controller.quorum.bootstrap.servers=" + ",".join(f"{at.host}:{at.port}" for _, at in known)


def _broker_endpoints(found: ReplayedMetadata, node_id: int) -> tuple[Endpoint, ...]:
    broker = found.image.brokers.get(node_id)
    return broker.endpoints if broker is not None and broker.endpoints else (DEFAULT_BROKER,)


def _controller_endpoints(found: ReplayedMetadata, node_id: int) -> tuple[Endpoint, ...]:
    controller = found.image.controllers.get(node_id)
    if controller is not None and controller.endpoints:
        return controller.endpoints
    voter = None if found.voters is None else found.voters.find(node_id)
    if voter is not None and voter.endpoints and voter.endpoints[0].port:
        return tuple(Endpoint(name=each.name, host=each.host, port=each.port) for each in voter.endpoints)
    # A broker has none of its own, and calls that of others by its name.
    elsewhere = next((each.endpoints for each in found.image.controllers.values() if each.endpoints), None)
    return elsewhere or (DEFAULT_CONTROLLER,)


def _apart(controllers: tuple[Endpoint, ...], brokers: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    """Apache Kafka's controller needs a port of its own; a quorum of one takes note of the new address by itself."""
    taken = {endpoint.port for endpoint in brokers}
    ports = (port for port in range(max(taken) + 1, 65536) if port not in taken)
    names = {endpoint.name for endpoint in brokers}
    return tuple(
        msgspec.structs.replace(
            each,
            name="CONTROLLER" if each.name in names else each.name,
            port=each.port if each.port not in taken else next(ports),
        )
        for each in controllers
    )


def _listeners(endpoints: Iterable[Endpoint]) -> str:
    return ",".join(f"{endpoint.name}://{endpoint.host}:{endpoint.port}" for endpoint in endpoints)


def _protocols(endpoints: Iterable[Endpoint]) -> str:
    return ",".join(f"{each.name}:{SECURITY_PROTOCOLS.get(each.security_protocol, 'PLAINTEXT')}" for each in endpoints)
