"""BrokerRegistration and ControllerRegistration: what a node says of itself is checked before it becomes a record.

A broker whose predecessor under the same id is still alive is refused, or two brokers would take turns in throwing each
other out. Kafka lets a broker that was killed and started again wait until its old session has run out. Here it need
not wait if it holds the very log directories of its predecessor: it has locked them, so the predecessor is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata import metadata_version as levels
from millstream.metadata.broker_lifecycle import decide_register_broker, decide_register_controller
from millstream.metadata.broker_sessions import may_be_kafkas
from millstream.metadata.decision import Decision
from millstream.metadata.features import KRAFT_VERSION
from millstream.metadata.image import METADATA_VERSION, Broker, Controller, Endpoint, SupportedFeature
from millstream.protocol.errors import BrokerError, ErrorCode, UnsupportedVersion
from millstream.protocol.messages.broker_registration import BrokerRegistrationResponse
from millstream.protocol.messages.controller_registration import ControllerRegistrationResponse
from millstream.protocol.uuid import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.metadata.broker_sessions import BrokerSessions
    from millstream.metadata.image import MetadataImage
    from millstream.protocol.messages import broker_registration, controller_registration
    from millstream.protocol.messages.broker_registration import BrokerRegistrationRequest
    from millstream.protocol.messages.controller_registration import ControllerRegistrationRequest

NO_EPOCH = -1
_RESERVED_DIRECTORIES = (DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING, DIRECTORY_LOST)


class DuplicateBroker(BrokerError, code=ErrorCode.DUPLICATE_BROKER_REGISTRATION):
    """Another broker with this id lives."""


class InconsistentCluster(BrokerError, code=ErrorCode.INCONSISTENT_CLUSTER_ID):
    """The broker belongs to another cluster."""


class InvalidRegistration(BrokerError, code=ErrorCode.INVALID_REGISTRATION):
    """The registration cannot be."""


def decide_registration(
    image: MetadataImage, request: BrokerRegistrationRequest, sessions: BrokerSessions, cluster_id: str, now_ms: int
) -> Decision[BrokerRegistrationResponse]:
    """Register the broker, fenced; the answer is its epoch."""
    if request.cluster_id != cluster_id:
        raise InconsistentCluster(f"This is the cluster {cluster_id}, and not {request.cluster_id}.")
    if request.is_migrating_zk_broker:
        raise InvalidRegistration("A migration from ZooKeeper is not possible here.")
    _check_directories(image, request)
    features = _features(request.features)
    for name, level in image.features.items():
        _check_feature(name, level, features, f"Broker {request.broker_id}")
    predecessor = image.brokers.get(request.broker_id)
    if predecessor is not None and predecessor.incarnation_id == request.incarnation_id:
        # The answer was lost, and the broker asks again.
        return Decision((), BrokerRegistrationResponse(broker_epoch=predecessor.epoch))
    if (
        predecessor is not None
        and sessions.is_alive(predecessor.id, predecessor.epoch, now_ms)
        and not predecessor.fenced
        and (not request.log_dirs or not set(request.log_dirs) & set(predecessor.log_dirs))
    ):
        raise DuplicateBroker(f"Another broker {request.broker_id} is alive.")
    broker = Broker(
        id=request.broker_id,
        epoch=NO_EPOCH,
        incarnation_id=request.incarnation_id,
        endpoints=_endpoints(request.listeners),
        rack=request.rack,
        features=features,
        log_dirs=tuple(sorted(request.log_dirs)),
    )
    registered = decide_register_broker(image, broker, clean_shutdown_epoch=request.previous_broker_epoch)
    sessions.heard(broker.id, registered.response, NO_EPOCH, now_ms, pace_unknown=may_be_kafkas(broker))
    return Decision(registered.records, BrokerRegistrationResponse(broker_epoch=registered.response))


def decide_controller_registration(
    image: MetadataImage, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    """Note where a controller that is not active listens, and what it can work with."""
    if image.metadata_version < levels.CONTROLLER_REGISTRATION:
        raise UnsupportedVersion(f"metadata.version {image.metadata_version} knows no registration of controllers.")
    features = _features(request.features)
    for name, level in image.features.items():
        _check_feature(name, level, features, f"Controller {request.controller_id}")
    controller = Controller(
        id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        endpoints=_endpoints(request.listeners),
        features=features,
    )
    records = decide_register_controller(image, controller).records
    return Decision(records, ControllerRegistrationResponse(error_message=None))


def _check_directories(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    if image.metadata_version < levels.DIRECTORY_ASSIGNMENT:
        return
    if not request.log_dirs:
        raise InvalidRegistration("A broker has a log directory at least.")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise InvalidRegistration("Two log directories have the same id.")
    if any(directory in _RESERVED_DIRECTORIES for directory in request.log_dirs):
        raise InvalidRegistration("A log directory has an id that stands for something else.")
    for broker in image.brokers.values():
        shared = [each for each in request.log_dirs if broker.id != request.broker_id and each in broker.log_dirs]
        if shared:
            raise InvalidRegistration(f"The log directory {shared[0]} is that of broker {broker.id}.")


def _check_feature(name: str, level: int, supported: dict[str, SupportedFeature], node: str) -> None:
    if name == KRAFT_VERSION or level == 0:
        return
    known = supported.get(name)
    if known is None:
        raise UnsupportedVersion(f"{node} does not know {name}, which is at level {level} in this cluster.")
    lowest = known.min_level if name == METADATA_VERSION else 0
    if not lowest <= level <= known.max_level:
        raise UnsupportedVersion(
            f"{node} supports {name} from {lowest} to {known.max_level}; it is at level {level} in this cluster."
        )


def _endpoints(
    listeners: Iterable[broker_registration.Listener | controller_registration.Listener],
) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
        for each in listeners
    )


def _features(
    features: Iterable[broker_registration.Feature | controller_registration.Feature],
) -> dict[str, SupportedFeature]:
    return {
        feature.name: SupportedFeature(feature.min_supported_version, feature.max_supported_version)
        for feature in features
    }
