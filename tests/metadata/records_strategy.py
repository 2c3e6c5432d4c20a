"""Runs of metadata records that a controller could have written, of every type there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from millstream.metadata.delta import apply
from millstream.metadata.image import EMPTY_IMAGE
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
    MetadataRecord,
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
from millstream.protocol.messages.metadata.client_quota import EntityData
from millstream.protocol.messages.metadata.register_broker import BrokerEndpoint, BrokerFeature
from millstream.protocol.messages.metadata.register_controller import ControllerEndpoint, ControllerFeature
from millstream.protocol.uuid import Uuid

if TYPE_CHECKING:
    from millstream.metadata.image import MetadataImage

names = st.sampled_from(["a", "b", "orders", "payments"])
uuids = st.integers(100, 105).map(lambda number: Uuid(number.to_bytes(16, "big")))
brokers = st.integers(1, 3)
replica_lists = st.lists(brokers, min_size=1, max_size=3, unique=True)
small = st.integers(0, 5)


def topic(number: int) -> Uuid:
    return Uuid((1000 + number).to_bytes(16, "big"))


@st.composite
def metadata_records(draw: st.DrawFn, max_size: int = 25) -> list[MetadataRecord]:
    """Each record fits the state that the ones before it led to; the last is never inside of a transaction."""
    records: list[MetadataRecord] = [FeatureLevelRecord(name="metadata.version", feature_level=30)]
    image, _ = apply(EMPTY_IMAGE, records)
    visible = image
    open_transaction = False
    for _ in range(draw(st.integers(0, max_size))):
        if open_transaction and draw(st.integers(0, 3)) == 0:
            abort = draw(st.booleans())
            record: MetadataRecord = AbortTransactionRecord(reason="x") if abort else EndTransactionRecord()
            image = visible if abort else image
            open_transaction = False
        elif not open_transaction and draw(st.integers(0, 9)) == 0:
            record, open_transaction, visible = BeginTransactionRecord(name="t"), True, image
        else:
            record = draw(_strategy(draw(st.integers(0, len(_STATIC) + len(_FROM_IMAGE) - 1)), image))
            image, _ = apply(image, [record])
        records.append(record)
    if open_transaction:
        records.append(EndTransactionRecord())
    return records


_entities = st.lists(st.sampled_from(["user", "client-id"]), min_size=1, unique=True).flatmap(
    lambda kinds: st.tuples(
        *(st.builds(EntityData, entity_type=st.just(kind), entity_name=names | st.none()) for kind in sorted(kinds))
    ).map(list)
)
_BROKER: dict[str, Any] = {
    "broker_epoch": small,
    "rack": names | st.none(),
    "fenced": st.booleans(),
    "in_controlled_shutdown": st.booleans(),
    "log_dirs": st.lists(uuids, max_size=2, unique=True),
    "cordoned_log_dirs": st.lists(uuids, max_size=1) | st.none(),
    "is_migrating_zk_broker": st.booleans(),
}


def _registration(node: str, endpoint: Any, feature: Any) -> dict[str, Any]:
    return {
        node: brokers,
        "incarnation_id": uuids,
        "end_points": st.lists(
            st.builds(endpoint, name=names, host=names, port=st.integers(0, 65535), security_protocol=small),
            max_size=2,
            unique_by=lambda each: each.name,
        ),
        "features": st.lists(
            st.builds(feature, name=names, min_supported_version=small, max_supported_version=small),
            max_size=2,
            unique_by=lambda each: each.name,
        ),
    }


_STATIC: list[st.SearchStrategy[Any]] = [
    st.builds(RegisterBrokerRecord, **_registration("broker_id", BrokerEndpoint, BrokerFeature), **_BROKER),
    st.builds(
        RegisterControllerRecord,
        **_registration("controller_id", ControllerEndpoint, ControllerFeature),
        zk_migration_ready=st.booleans(),
    ),
    st.builds(FeatureLevelRecord, name=st.sampled_from(["group.version", "x"]), feature_level=st.integers(0, 2)),
    st.builds(ProducerIdsRecord, broker_id=brokers, next_producer_id=st.integers(1000, 9000)),
    st.builds(ClientQuotaRecord, entity=_entities, key=names, value=st.floats(0, 100), remove=st.booleans()),
    st.builds(
        AccessControlEntryRecord,
        id=uuids,
        resource_type=small,
        resource_name=names,
        pattern_type=small,
        principal=names,
        host=names,
        operation=small,
        permission_type=small,
    ),
    st.builds(
        UserScramCredentialRecord,
        name=names,
        mechanism=st.integers(1, 2),
        salt=st.binary(max_size=3),
        stored_key=st.binary(max_size=3),
        server_key=st.binary(max_size=3),
        iterations=small,
    ),
    st.builds(RemoveUserScramCredentialRecord, name=names, mechanism=st.integers(1, 2)),
    st.builds(
        DelegationTokenRecord,
        owner=names,
        requester=names,
        renewers=st.lists(names, max_size=2),
        issue_timestamp=small,
        max_timestamp=small,
        expiration_timestamp=small,
        token_id=names,
    ),
    st.builds(RemoveDelegationTokenRecord, token_id=names),
    st.builds(ZkMigrationStateRecord, zk_migration_state=st.integers(0, 3)),
    st.builds(NoOpRecord),
]


def _strategy(choice: int, image: MetadataImage) -> st.SearchStrategy[Any]:
    if choice < len(_STATIC):
        return _STATIC[choice]
    found = _FROM_IMAGE[choice - len(_STATIC)](image)
    return st.builds(NoOpRecord) if found is None else found


def _remove_acl(image: MetadataImage) -> st.SearchStrategy[Any] | None:
    return st.builds(RemoveAccessControlEntryRecord, id=st.sampled_from(list(image.acls))) if image.acls else None


def _configs(image: MetadataImage) -> st.SearchStrategy[Any] | None:
    topics = st.sampled_from(sorted(image.topics.by_name)) if image.topics.by_name else st.nothing()
    resource = st.tuples(st.just(2), topics) | st.tuples(st.sampled_from([4, 16, 32]), names | st.just(""))
    return st.builds(
        lambda found, name, value: ConfigRecord(resource_type=found[0], resource_name=found[1], name=name, value=value),
        resource,
        names,
        names | st.none(),
    )


def _new_topic(image: MetadataImage) -> st.SearchStrategy[Any] | None:
    free = [name for name in ("a", "b", "orders", "payments") if name not in image.topics.by_name]
    number = max((int.from_bytes(topic_id, "big") - 999 for topic_id in image.topics.by_id), default=0)
    return st.builds(TopicRecord, name=st.sampled_from(free), topic_id=st.just(topic(number))) if free else None


def _broker_change(image: MetadataImage) -> st.SearchStrategy[Any] | None:
    if not image.brokers:
        return None
    registered = st.sampled_from([(broker.id, broker.epoch) for broker in image.brokers.values()])
    return st.one_of(
        registered.map(lambda broker: UnregisterBrokerRecord(broker_id=broker[0], broker_epoch=broker[1])),
        registered.map(lambda broker: FenceBrokerRecord(id=broker[0], epoch=broker[1])),
        registered.map(lambda broker: UnfenceBrokerRecord(id=broker[0], epoch=broker[1])),
        st.builds(
            lambda broker, change: BrokerRegistrationChangeRecord(
                broker_id=broker[0], broker_epoch=broker[1], **change
            ),
            registered,
            _broker_changes,
        ),
    )


_broker_changes = st.fixed_dictionaries(
    {
        "fenced": st.integers(-1, 1),
        "in_controlled_shutdown": st.integers(0, 1),
        "log_dirs": st.lists(uuids, max_size=2, unique=True),
        "cordoned_log_dirs": st.lists(uuids, max_size=1) | st.none(),
    }
)


def _topic_change(image: MetadataImage) -> st.SearchStrategy[Any] | None:
    if not image.topics.by_id:
        return None
    removal = st.builds(RemoveTopicRecord, topic_id=st.sampled_from(list(image.topics.by_id)))
    return removal | st.builds(ClearElrRecord, topic_name=st.sampled_from(["", *image.topics.by_name]))


def _new_partition(image: MetadataImage) -> st.SearchStrategy[Any] | None:
    if not image.topics.by_id:
        return None
    topic_ids = st.sampled_from(list(image.topics.by_id))
    return st.builds(_partition, topic_ids, st.integers(0, 3), replica_lists, st.data())


def _partition_change(image: MetadataImage) -> st.SearchStrategy[Any] | None:
    partitions = [(each.id, number) for each in image.topics.by_id.values() for number in each.partitions]
    return st.builds(_change, st.sampled_from(partitions), replica_lists, st.data()) if partitions else None


def _partition(topic_id: Uuid, number: int, replicas: list[int], data: st.DataObject) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=replicas,
        isr=data.draw(st.lists(st.sampled_from(replicas), unique=True)),
        removing_replicas=data.draw(st.lists(brokers, max_size=1)),
        adding_replicas=data.draw(st.lists(brokers, max_size=1)),
        leader=data.draw(st.sampled_from([-1, *replicas])),
        leader_recovery_state=data.draw(st.integers(0, 1)),
        leader_epoch=data.draw(small),
        partition_epoch=data.draw(small),
        directories=data.draw(st.lists(uuids, min_size=len(replicas), max_size=len(replicas)) | st.just([])),
        eligible_leader_replicas=data.draw(st.none() | st.lists(brokers, max_size=2)),
        last_known_elr=data.draw(st.none() | st.lists(brokers, max_size=1)),
    )


def _change(partition: tuple[Uuid, int], replicas: list[int], data: st.DataObject) -> PartitionChangeRecord:
    moved = data.draw(st.booleans())
    return PartitionChangeRecord(
        partition_id=partition[1],
        topic_id=partition[0],
        isr=data.draw(st.none() | st.lists(brokers, max_size=2)),
        leader=data.draw(st.integers(-2, 3)),
        replicas=replicas if moved else None,
        directories=data.draw(st.lists(uuids, min_size=len(replicas), max_size=len(replicas))) if moved else None,
        removing_replicas=data.draw(st.none() | st.lists(brokers, max_size=1)),
        adding_replicas=data.draw(st.none() | st.lists(brokers, max_size=1)),
        leader_recovery_state=data.draw(st.integers(-1, 1)),
        eligible_leader_replicas=data.draw(st.none() | st.lists(brokers, max_size=2)),
        last_known_elr=data.draw(st.none() | st.lists(brokers, max_size=1)),
    )


_FROM_IMAGE = [
    _configs,
    _new_topic,
    _new_topic,
    _new_partition,
    _new_partition,
    _partition_change,
    _partition_change,
    _topic_change,
    _broker_change,
    _broker_change,
    _remove_acl,
]
