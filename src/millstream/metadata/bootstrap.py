"""The first records of a cluster: the finalized features, in one metadata transaction as Apache Kafka writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata import metadata_version as levels
from millstream.metadata.delta import apply
from millstream.metadata.image import BROKER_CONFIG, CLUSTER_DEFAULT, EMPTY_IMAGE
from millstream.metadata.leadership import eligible_leaders_enabled
from millstream.metadata.record_types import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.metadata.record_types import MetadataRecord

MIN_INSYNC_REPLICAS = "min.insync.replicas"


def feature_records(features: Mapping[str, int]) -> tuple[MetadataRecord, ...]:
    """What bootstrap.checkpoint says of the features: metadata.version first, levels of zero not at all."""
    ordered = sorted(features.items(), key=lambda feature: (feature[0] != "metadata.version", feature[0]))
    return tuple(FeatureLevelRecord(name=name, feature_level=level) for name, level in ordered if level > 0)


def bootstrap_records(records: Sequence[MetadataRecord], min_insync_replicas: int = 1) -> tuple[MetadataRecord, ...]:
    """The batch that opens the log of a cluster whose bootstrap.checkpoint holds `records`."""
    image, _ = apply(EMPTY_IMAGE, records)
    first = list(records)
    if eligible_leaders_enabled(image):
        # Eligible leader replicas need one min.insync.replicas for the whole cluster (KIP-966).
        first.append(
            ConfigRecord(
                resource_type=BROKER_CONFIG,
                resource_name=CLUSTER_DEFAULT,
                name=MIN_INSYNC_REPLICAS,
                value=str(min_insync_replicas),
            )
        )
    if image.metadata_version < levels.TRANSACTIONS:
        return tuple(first)
    return (BeginTransactionRecord(name="Bootstrap records"), *first, EndTransactionRecord())


def first_level(records: Sequence[MetadataRecord]) -> int:
    """The metadata.version that the first batch of a cluster brings along, and is itself written at."""
    image, _ = apply(EMPTY_IMAGE, records)
    return image.metadata_version or levels.LEVEL_MIN
