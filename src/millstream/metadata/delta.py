"""Replaying metadata records: the only way from one image to the next.

    image, changes = apply(image, records, offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)

`apply` collects what the records change in small dictionaries and builds the new image at the end, so a batch of
any size copies each touched part once. `changes` says what a listener may have to react to.

Records of a metadata transaction (KIP-868) wait in `image.pending` until EndTransactionRecord and are dropped by
AbortTransactionRecord.

A record that cannot be applied (a partition of an unknown topic, a fence with a stale epoch) means that the log is not
what a controller wrote: `BrokenMetadata` stops the node rather than letting it guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from millstream.metadata.delta_cluster import broker_from, changed_broker, controller_from
from millstream.metadata.delta_errors import BrokenMetadata
from millstream.metadata.delta_topics import TopicChanges
from millstream.metadata.image import METADATA_VERSION, TOPIC_CONFIG, Broker, ConfigKey, MetadataImage, QuotaEntity
from millstream.metadata.image_map import GONE, Gone, SharedMap
from millstream.metadata.record_types import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from millstream.metadata.image import TopicImage
    from millstream.metadata.record_types import MetadataRecord
    from millstream.protocol.uuid import Uuid

__all__ = ["BrokenMetadata", "Changes", "Delta", "apply"]


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two images. Topics are told apart by id: one that was deleted and made again in one batch
    is in both `topics_deleted` (as it was) and `topics_created`."""

    topics_deleted: tuple[TopicImage, ...] = ()
    topics_created: tuple[TopicImage, ...] = ()
    partitions_changed: Mapping[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    configs: tuple[ConfigKey, ...] = ()
    brokers: tuple[int, ...] = ()
    controllers: tuple[int, ...] = ()
    features: tuple[str, ...] = ()
    quotas: tuple[QuotaEntity, ...] = ()
    acls: tuple[Uuid, ...] = ()
    scram: tuple[tuple[str, int], ...] = ()
    tokens: tuple[str, ...] = ()
    producer_ids: bool = False

    def __bool__(self) -> bool:
        return self != NO_CHANGES


NO_CHANGES = Changes()


def apply(
    image: MetadataImage,
    records: Iterable[MetadataRecord],
    *,
    offset: int = -1,
    epoch: int = -1,
    timestamp_ms: int = 0,
) -> tuple[MetadataImage, Changes]:
    """Replay `records`, the last of which stands at `offset` and was appended in `epoch`."""
    delta = Delta(image)
    for record in records:
        delta.replay(record)
    return delta.finish(offset, epoch, timestamp_ms)


class Delta:
    """What a run of records changes in an image; also for who replays many batches and wants the image at the end."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.pending: list[MetadataRecord] | None = None if image.pending is None else list(image.pending)
        self.features: dict[str, int | Gone] = {}
        self.brokers: dict[int, Broker | Gone] = {}
        self.controllers: dict[int, Any] = {}
        self.topics = TopicChanges(image.topics)
        self.configs: dict[ConfigKey, dict[str, str]] = {}
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls: dict[Uuid, AccessControlEntryRecord | Gone] = {}
        self.scram: dict[tuple[str, int], UserScramCredentialRecord | Gone] = {}
        self.tokens: dict[str, DelegationTokenRecord | Gone] = {}
        self.next_producer_id = image.next_producer_id
        self.zk_migration_state = image.zk_migration_state

    def replay(self, record: MetadataRecord) -> None:
        if self.pending is not None:
            self._continue_transaction(record)
        elif isinstance(record, BeginTransactionRecord):
            self.pending = []
        elif isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            raise BrokenMetadata(f"{type(record).__name__} outside of a transaction")
        else:
            self._replay_now(record)

    def _continue_transaction(self, record: MetadataRecord) -> None:
        assert self.pending is not None
        if isinstance(record, BeginTransactionRecord):
            raise BrokenMetadata("a metadata transaction inside another")
        if isinstance(record, AbortTransactionRecord):
            self.pending = None
        elif isinstance(record, EndTransactionRecord):
            records, self.pending = self.pending, None
            for waiting in records:
                self._replay_now(waiting)
        else:
            self.pending.append(record)

    def _replay_now(self, record: MetadataRecord) -> None:
        replay = _REPLAY.get(type(record))
        if replay is None:
            raise BrokenMetadata(f"{type(record).__name__} is not a metadata record")
        replay(self, record)

    def finish(self, offset: int, epoch: int, timestamp_ms: int) -> tuple[MetadataImage, Changes]:
        before = self.image
        topics, topic_changes = self.topics.finish()
        image = MetadataImage(
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            features=_after(before.features, self.features),
            brokers=_after(before.brokers, self.brokers),
            controllers=_after(before.controllers, self.controllers),
            topics=topics,
            configs=_after(before.configs, {key: values or GONE for key, values in self.configs.items()}),
            next_producer_id=self.next_producer_id,
            quotas=_after(before.quotas, {entity: limits or GONE for entity, limits in self.quotas.items()}),
            acls=_after(before.acls, self.acls),
            scram=_after(before.scram, self.scram),
            tokens=_after(before.tokens, self.tokens),
            zk_migration_state=self.zk_migration_state,
            pending=None if self.pending is None else tuple(self.pending),
            unclean_elections=before.unclean_elections,
        )
        changes = Changes(
            topics_deleted=topic_changes.deleted,
            topics_created=topic_changes.created,
            partitions_changed=topic_changes.partitions_changed,
            configs=tuple(self.configs),
            brokers=tuple(self.brokers),
            controllers=tuple(self.controllers),
            features=tuple(self.features),
            quotas=tuple(self.quotas),
            acls=tuple(self.acls),
            scram=tuple(self.scram),
            tokens=tuple(self.tokens),
            producer_ids=self.next_producer_id != before.next_producer_id,
        )
        return image, changes

    # One method per record type; `_REPLAY` finds it.

    def feature_level(self, record: FeatureLevelRecord) -> None:
        if record.feature_level == 0 and record.name != METADATA_VERSION:
            self.features[record.name] = GONE
        else:
            self.features[record.name] = record.feature_level

    def register_broker(self, record: RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = broker_from(record)

    def unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        self.brokers[record.broker_id] = GONE

    def fence_broker(self, record: FenceBrokerRecord) -> None:
        self.brokers[record.id] = msgspec.structs.replace(self._broker(record.id, record.epoch), fenced=True)

    def unfence_broker(self, record: UnfenceBrokerRecord) -> None:
        self.brokers[record.id] = msgspec.structs.replace(self._broker(record.id, record.epoch), fenced=False)

    def change_broker(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        self.brokers[record.broker_id] = changed_broker(broker, record)

    def _broker(self, broker_id: int, epoch: int) -> Broker:
        broker = self.brokers.get(broker_id) or self.image.brokers.get(broker_id)
        if not isinstance(broker, Broker):
            raise BrokenMetadata(f"a change to broker {broker_id}, which is not registered")
        if broker.epoch != epoch:
            raise BrokenMetadata(f"a change to broker {broker_id} at epoch {epoch}; it is registered at {broker.epoch}")
        return broker

    def register_controller(self, record: RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = controller_from(record)

    def topic(self, record: TopicRecord) -> None:
        self.topics.create(record)

    def remove_topic(self, record: RemoveTopicRecord) -> None:
        name = self.topics.remove(record)
        # The topic's settings go with it: no record of their own says so.
        if self._config((TOPIC_CONFIG, name)):
            self.configs[(TOPIC_CONFIG, name)] = {}
        else:
            self.configs.pop((TOPIC_CONFIG, name), None)

    def partition(self, record: PartitionRecord) -> None:
        self.topics.partition(record)

    def change_partition(self, record: PartitionChangeRecord) -> None:
        self.topics.change_partition(record)

    def clear_elr(self, record: ClearElrRecord) -> None:
        self.topics.clear_elr(record)

    def config(self, record: ConfigRecord) -> None:
        key = (record.resource_type, record.resource_name)
        values = self._config(key)
        if key not in self.configs:
            values = self.configs[key] = dict(values)
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value

    def _config(self, key: ConfigKey) -> dict[str, str]:
        values = self.configs.get(key)
        return cast("dict[str, str]", self.image.configs.get(key, {})) if values is None else values

    def quota(self, record: ClientQuotaRecord) -> None:
        entity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
        limits = self.quotas.get(entity)
        if limits is None:
            limits = self.quotas[entity] = dict(self.image.quotas.get(entity, {}))
        if record.remove:
            limits.pop(record.key, None)
        else:
            limits[record.key] = record.value

    def producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def add_acl(self, record: AccessControlEntryRecord) -> None:
        self.acls[record.id] = record

    def remove_acl(self, record: RemoveAccessControlEntryRecord) -> None:
        if record.id not in self.image.acls and record.id not in self.acls:
            raise BrokenMetadata(f"removal of access control entry {record.id}, which does not exist")
        self.acls[record.id] = GONE

    def scram_credential(self, record: UserScramCredentialRecord) -> None:
        self.scram[(record.name, record.mechanism)] = record

    def remove_scram_credential(self, record: RemoveUserScramCredentialRecord) -> None:
        self.scram[(record.name, record.mechanism)] = GONE

    def token(self, record: DelegationTokenRecord) -> None:
        self.tokens[record.token_id] = record

    def remove_token(self, record: RemoveDelegationTokenRecord) -> None:
        self.tokens[record.token_id] = GONE

    def zk_migration(self, record: ZkMigrationStateRecord) -> None:
        self.zk_migration_state = record.zk_migration_state

    def no_op(self, record: NoOpRecord) -> None:
        """It only moves the offset."""


def _after(before: Any, changes: dict[Any, Any]) -> Any:
    if not changes:
        return before
    shared = before if isinstance(before, SharedMap) else SharedMap(before)
    # A removal of what was never there leaves no trace in the image.
    return shared.with_changes({key: value for key, value in changes.items() if value is not GONE or key in shared})


_REPLAY: dict[type, Callable[[Delta, Any], None]] = {
    RegisterBrokerRecord: Delta.register_broker,
    UnregisterBrokerRecord: Delta.unregister_broker,
    TopicRecord: Delta.topic,
    PartitionRecord: Delta.partition,
    ConfigRecord: Delta.config,
    PartitionChangeRecord: Delta.change_partition,
    FenceBrokerRecord: Delta.fence_broker,
    UnfenceBrokerRecord: Delta.unfence_broker,
    RemoveTopicRecord: Delta.remove_topic,
    DelegationTokenRecord: Delta.token,
    UserScramCredentialRecord: Delta.scram_credential,
    FeatureLevelRecord: Delta.feature_level,
    ClientQuotaRecord: Delta.quota,
    ProducerIdsRecord: Delta.producer_ids,
    BrokerRegistrationChangeRecord: Delta.change_broker,
    AccessControlEntryRecord: Delta.add_acl,
    RemoveAccessControlEntryRecord: Delta.remove_acl,
    NoOpRecord: Delta.no_op,
    ZkMigrationStateRecord: Delta.zk_migration,
    RemoveUserScramCredentialRecord: Delta.remove_scram_credential,
    RemoveDelegationTokenRecord: Delta.remove_token,
    RegisterControllerRecord: Delta.register_controller,
    ClearElrRecord: Delta.clear_elr,
}
