"""An image as records: what a snapshot holds between its header and its footer.

The order is Apache Kafka's: metadata.version before all else, because it decides how to read the rest; then features,
brokers, controllers, topics with their partitions, configs, quotas, producer ids, access rules, credentials and tokens.
Replaying the records gives an image equal to the one they came from (its place in the log aside).

What the finalized metadata.version cannot express is left out, as Kafka does: no reader at that level could take it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.metadata import metadata_version as levels
from millstream.metadata.image import METADATA_VERSION, Endpoint, MetadataImage, PartitionImage, SupportedFeature
from millstream.metadata.record_types import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    ZkMigrationStateRecord,
)
from millstream.protocol.messages.metadata.client_quota import EntityData
from millstream.protocol.messages.metadata.register_broker import BrokerEndpoint, BrokerFeature
from millstream.protocol.messages.metadata.register_controller import ControllerEndpoint, ControllerFeature

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.metadata.image import Broker, Controller
    from millstream.protocol.uuid import Uuid


def snapshot_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Every record that a snapshot of `image` holds. There is none while a metadata transaction is open."""
    assert image.pending is None, "a snapshot in the middle of a metadata transaction"
    level = image.metadata_version
    yield from _features(image)
    for broker in image.brokers.values():
        yield register_broker_record(broker, level)
    if level >= levels.CONTROLLER_REGISTRATION:
        for controller in image.controllers.values():
            yield register_controller_record(controller)
    yield from _topics(image, level)
    for (resource_type, resource_name), values in image.configs.items():
        for name, value in values.items():
            yield ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
    yield from _quotas(image)
    if image.next_producer_id > 0:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from image.acls.values()
    if level >= levels.SCRAM:
        yield from image.scram.values()
    if level >= levels.DELEGATION_TOKENS:
        yield from image.tokens.values()


def _features(image: MetadataImage) -> Iterator[MetadataRecord]:
    if METADATA_VERSION in image.features:
        yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=image.features[METADATA_VERSION])
    if image.zk_migration_state:
        yield ZkMigrationStateRecord(zk_migration_state=image.zk_migration_state)
    for name, level in image.features.items():
        if name != METADATA_VERSION:
            yield FeatureLevelRecord(name=name, feature_level=level)


def _topics(image: MetadataImage, level: int) -> Iterator[MetadataRecord]:
    for topic in image.topics.by_id.values():
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        for number in sorted(topic.partitions):
            yield partition_record(topic.id, number, topic.partitions[number], level)


def _quotas(image: MetadataImage) -> Iterator[MetadataRecord]:
    for entity, limits in image.quotas.items():
        for key, value in limits.items():
            parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)


def partition_record(topic_id: Uuid, number: int, partition: PartitionImage, level: int) -> PartitionRecord:
    with_elr = level >= levels.ELIGIBLE_LEADER_REPLICAS
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories) if level >= levels.DIRECTORY_ASSIGNMENT else [],
        # An empty list of eligible leaders is written as none at all.
        eligible_leader_replicas=list(partition.elr) if with_elr and partition.elr else None,
        last_known_elr=list(partition.last_known_elr) if with_elr and partition.last_known_elr else None,
    )


def register_broker_record(broker: Broker, level: int) -> RegisterBrokerRecord:
    version = levels.register_broker_version(level)
    cordoned = broker.cordoned_log_dirs
    return RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker and version >= 2,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[BrokerEndpoint(**_fields(endpoint)) for endpoint in broker.endpoints],
        features=[BrokerFeature(**feature) for feature in _ranges(broker.features)],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs) if version >= 3 else [],
        cordoned_log_dirs=list(cordoned) if cordoned is not None and version >= 4 else None,
    )


def register_controller_record(controller: Controller) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[ControllerEndpoint(**_fields(endpoint)) for endpoint in controller.endpoints],
        features=[ControllerFeature(**feature) for feature in _ranges(controller.features)],
    )


def _fields(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "name": endpoint.name,
        "host": endpoint.host,
        "port": endpoint.port,
        "security_protocol": endpoint.security_protocol,
    }


def _ranges(features: Mapping[str, SupportedFeature]) -> Iterator[dict[str, Any]]:
    for name, supported in features.items():
        yield {
            "name": name,
            "min_supported_version": supported.min_level,
            "max_supported_version": supported.max_level,
        }
