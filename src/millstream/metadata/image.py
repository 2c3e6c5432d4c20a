"""The cluster's state as one immutable value: the metadata image.

An image is what replaying the metadata log up to `offset` gives (`delta.apply` is the only thing that makes a new
one). Readers hold on to an image for as long as they work with it and never see half a change. Successive images share
what did not change (`image_map.py`).

Every record type of Kafka's metadata log has its place here, whether this broker uses it or not: a snapshot written
from the image (`snapshot.py`) must not lose what Apache Kafka stored. Where nothing here reads a kind of record yet
(access control entries, SCRAM credentials, delegation tokens), the record itself is kept; records are never changed
once decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from millstream.metadata.image_map import SharedMap
from millstream.protocol.uuid import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.metadata.record_types import MetadataRecord
    from millstream.protocol.messages.metadata.access_control_entry import AccessControlEntryRecord
    from millstream.protocol.messages.metadata.delegation_token import DelegationTokenRecord
    from millstream.protocol.messages.metadata.user_scram_credential import UserScramCredentialRecord

NO_LEADER = -1
METADATA_VERSION = "metadata.version"

# Resource types of ConfigRecord: Kafka's ConfigResource.Type ids.
TOPIC_CONFIG = 2
BROKER_CONFIG = 4
BROKER_LOGGER_CONFIG = 8
CLIENT_METRICS_CONFIG = 16
GROUP_CONFIG = 32
# The name of the resource that holds the defaults of all brokers.
CLUSTER_DEFAULT = ""

# LeaderRecoveryState: after an unclean election a leader is RECOVERING until it has dealt with the loss.
RECOVERED = 0
RECOVERING = 1

ConfigKey = tuple[int, str]
QuotaEntity = tuple[tuple[str, str | None], ...]


class PartitionImage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One partition. `directories` says for each replica in which log directory it lives."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    directories: tuple[Uuid, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED

    def directory_of(self, replica: int) -> Uuid:
        return self.directories[self.replicas.index(replica)]


class TopicImage(msgspec.Struct, frozen=True, kw_only=True):
    """One topic and its partitions by number."""

    name: str
    id: Uuid
    partitions: Mapping[int, PartitionImage]


class Topics(NamedTuple):
    """All topics, to be found by name and by id."""

    by_name: Mapping[str, TopicImage]
    by_id: Mapping[Uuid, TopicImage]

    def partition(self, topic_id: Uuid, partition: int) -> PartitionImage | None:
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(partition)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A listener as registered. `security_protocol` is Kafka's id: 0 PLAINTEXT, 1 SSL, 2 and 3 SASL over them."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class SupportedFeature(NamedTuple):
    """The levels of a feature that a node can work with."""

    min_level: int
    max_level: int


class Broker(msgspec.Struct, frozen=True, kw_only=True):
    """A registered broker. A fenced one is known but leads nothing and is not shown to clients."""

    id: int
    epoch: int
    incarnation_id: Uuid = ZERO_UUID
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    features: Mapping[str, SupportedFeature] = msgspec.field(default_factory=dict)
    log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None
    is_migrating_zk_broker: bool = False

    @property
    def active(self) -> bool:
        """Whether it may lead partitions."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener), None)


class Controller(msgspec.Struct, frozen=True, kw_only=True):
    """A registered controller."""

    id: int
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: bool = False
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, SupportedFeature] = msgspec.field(default_factory=dict)


def _empty() -> SharedMap[Any, Any]:
    return SharedMap()


class MetadataImage(msgspec.Struct, frozen=True, kw_only=True):
    """The whole state after the record at `offset`, which was appended in `epoch` at `timestamp_ms`.

    `pending` holds the records of a metadata transaction (KIP-868) that has begun and not ended; the rest of the
    image does not show them. `unclean_elections` is no record's: the file of the controller that decides allows them,
    where no config in the log says otherwise.
    """

    offset: int = -1
    epoch: int = -1
    timestamp_ms: int = 0
    features: Mapping[str, int] = msgspec.field(default_factory=_empty)
    brokers: Mapping[int, Broker] = msgspec.field(default_factory=_empty)
    controllers: Mapping[int, Controller] = msgspec.field(default_factory=_empty)
    topics: Topics = msgspec.field(default_factory=lambda: Topics(SharedMap(), SharedMap()))
    configs: Mapping[ConfigKey, Mapping[str, str]] = msgspec.field(default_factory=_empty)
    next_producer_id: int = 0
    quotas: Mapping[QuotaEntity, Mapping[str, float]] = msgspec.field(default_factory=_empty)
    acls: Mapping[Uuid, AccessControlEntryRecord] = msgspec.field(default_factory=_empty)
    scram: Mapping[tuple[str, int], UserScramCredentialRecord] = msgspec.field(default_factory=_empty)
    tokens: Mapping[str, DelegationTokenRecord] = msgspec.field(default_factory=_empty)
    zk_migration_state: int = 0
    pending: tuple[MetadataRecord, ...] | None = None
    unclean_elections: bool = False

    @property
    def metadata_version(self) -> int:
        """The finalized level; 0 before the first record."""
        return self.features.get(METADATA_VERSION, 0)

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """What was set on a resource; empty where nothing was."""
        return self.configs.get((resource_type, name), {})

    def topic_config(self, topic: str) -> Mapping[str, str]:
        return self.config(TOPIC_CONFIG, topic)

    @property
    def holds_secrets(self) -> bool:
        """Whether someone meant this cluster to be protected: access rules or credentials are stored."""
        return bool(self.acls or self.scram or self.tokens)


EMPTY_IMAGE = MetadataImage()
