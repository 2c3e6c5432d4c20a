"""Images to decide on, made as a controller makes them: by applying records."""

from __future__ import annotations

from random import Random as SeededRandom
from typing import TYPE_CHECKING, Any

from millstream.metadata.decide_create_topics import decide_create_topics
from millstream.metadata.delta import apply
from millstream.metadata.image import EMPTY_IMAGE, METADATA_VERSION, MetadataImage
from millstream.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from millstream.protocol.messages.metadata.broker_registration_change import BrokerRegistrationChangeRecord
from millstream.protocol.messages.metadata.feature_level import FeatureLevelRecord
from millstream.protocol.messages.metadata.register_broker import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from millstream.protocol.uuid import Uuid
from millstream.settings.effective import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millstream.metadata.decision import Decision

SETTINGS = Settings()


class Dice:
    """Seeded randomness."""

    def __init__(self, seed: int = 0) -> None:
        self._random = SeededRandom(seed)

    def uuid(self) -> Uuid:
        return Uuid(self._random.randbytes(16))

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


def directory_of(broker_id: int) -> Uuid:
    return Uuid(b"directory" + broker_id.to_bytes(7, "big"))


def registration(broker_id: int, *, rack: str | None = None, fenced: bool = False) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=Uuid(bytes(15) + bytes([broker_id])),
        broker_epoch=100 + broker_id,
        end_points=[BrokerEndpoint(name="PLAINTEXT", host=f"host-{broker_id}", port=9092, security_protocol=0)],
        features=[
            BrokerFeature(name=METADATA_VERSION, min_supported_version=7, max_supported_version=30),
            BrokerFeature(name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1),
            BrokerFeature(name="kraft.version", min_supported_version=0, max_supported_version=1),
        ],
        rack=rack,
        fenced=fenced,
        log_dirs=[directory_of(broker_id)],
    )


def cluster(brokers: Iterable[int] = (1,), *, fenced: Iterable[int] = (), level: int = 30) -> MetadataImage:
    """Registered brokers and nothing else."""
    asleep = set(fenced)
    records = [FeatureLevelRecord(name=METADATA_VERSION, feature_level=level)]
    image, _ = apply(
        EMPTY_IMAGE, [*records, *(registration(id_, fenced=id_ in asleep) for id_ in (*brokers, *fenced))], offset=10
    )
    return image


def after(image: MetadataImage, decision: Decision[Any]) -> MetadataImage:
    """The image once a decision is committed."""
    return with_records(image, *decision.records)


def with_records(image: MetadataImage, *records: Any) -> MetadataImage:
    return apply(image, records, offset=image.offset + max(len(records), 1))[0]


def fence(image: MetadataImage, *broker_ids: int) -> MetadataImage:
    """Mark brokers as gone, and nothing else: their partitions still name them."""
    return with_records(
        image,
        *(
            BrokerRegistrationChangeRecord(broker_id=id_, broker_epoch=image.brokers[id_].epoch, fenced=1)
            for id_ in broker_ids
        ),
    )


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    *,
    assigned: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=-1 if assigned else partitions,
        replication_factor=-1 if assigned else replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in (assigned or {}).items()
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


def with_topics(image: MetadataImage, *topics: CreatableTopic) -> MetadataImage:
    decision = decide_create_topics(image, CreateTopicsRequest(topics=list(topics)), settings=SETTINGS, random=Dice())
    assert all(result.error_code == 0 for result in decision.response.topics), decision.response
    return after(image, decision)
