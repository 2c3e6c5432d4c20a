"""Records of brokers and controllers, as values of the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from millstream.metadata.delta_errors import BrokenMetadata
from millstream.metadata.image import Broker, Controller, Endpoint, SupportedFeature

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.protocol.messages.metadata.broker_registration_change import BrokerRegistrationChangeRecord
    from millstream.protocol.messages.metadata.register_broker import (
        BrokerEndpoint,
        BrokerFeature,
        RegisterBrokerRecord,
    )
    from millstream.protocol.messages.metadata.register_controller import (
        ControllerEndpoint,
        ControllerFeature,
        RegisterControllerRecord,
    )


def broker_from(record: RegisterBrokerRecord) -> Broker:
    cordoned = record.cordoned_log_dirs
    return Broker(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=_endpoints(record.end_points),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        features=_features(record.features),
        log_dirs=tuple(record.log_dirs),
        cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
        is_migrating_zk_broker=record.is_migrating_zk_broker,
    )


def controller_from(record: RegisterControllerRecord) -> Controller:
    return Controller(
        id=record.controller_id,
        incarnation_id=record.incarnation_id,
        zk_migration_ready=record.zk_migration_ready,
        endpoints=_endpoints(record.end_points),
        features=_features(record.features),
    )


def changed_broker(broker: Broker, record: BrokerRegistrationChangeRecord) -> Broker:
    """Each field of the record says what to change; its default says to leave it."""
    if record.fenced not in (-1, 0, 1) or record.in_controlled_shutdown not in (0, 1):
        raise BrokenMetadata(f"a change to broker {broker.id} that has no meaning: {record}")
    return msgspec.structs.replace(
        broker,
        fenced=broker.fenced if record.fenced == 0 else record.fenced == 1,
        in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown == 1,
        log_dirs=tuple(record.log_dirs) or broker.log_dirs,
        cordoned_log_dirs=(
            broker.cordoned_log_dirs if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs)
        ),
    )


def _endpoints(found: Iterable[BrokerEndpoint | ControllerEndpoint]) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(
            name=endpoint.name, host=endpoint.host, port=endpoint.port, security_protocol=endpoint.security_protocol
        )
        for endpoint in found
    )


def _features(found: Iterable[BrokerFeature | ControllerFeature]) -> dict[str, SupportedFeature]:
    return {
        feature.name: SupportedFeature(feature.min_supported_version, feature.max_supported_version)
        for feature in found
    }
