"""UpdateFeatures: finalizing a feature's level for the whole cluster.

All updates of a request happen or none does. A level must be one that every registered node can work with. Going down
must be asked for as such; metadata.version only goes down to a level that writes the same records, since Kafka cannot
rewrite what is in the log, and neither can we.

kraft.version stands in a control record of the quorum and no feature record. Here it is only decided whether it may be
raised; whoever carries the decision out has the quorum write its record (quorum/upgrade.py), in front of a NoOpRecord
whose commit says that the quorum's own is committed, too. It is never lowered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.metadata import metadata_version as levels
from millstream.metadata.decision import Decision
from millstream.metadata.features import KRAFT_VERSION
from millstream.metadata.image import BROKER_CONFIG, CLUSTER_DEFAULT, METADATA_VERSION
from millstream.metadata.leadership import ELIGIBLE_LEADER_REPLICAS
from millstream.metadata.partition_change import MIN_INSYNC_REPLICAS
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.metadata.clear_elr import ClearElrRecord
from millstream.protocol.messages.metadata.config import ConfigRecord
from millstream.protocol.messages.metadata.feature_level import FeatureLevelRecord
from millstream.protocol.messages.metadata.no_op import NoOpRecord
from millstream.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.metadata.image import MetadataImage, SupportedFeature
    from millstream.metadata.record_types import MetadataRecord

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

# The levels of metadata.version that brought new records or fields; a downgrade across one of them would lose some.
LEVELS_THAT_CHANGED_RECORDS = (7, 8, 11, 13, 14, 15, 17, 23, 30)


class KRaftVersion(NamedTuple):
    """The level that the quorum works at, and what keeps it from the next one, if anything does."""

    level: int
    obstacle: str | None = None


class InvalidUpdateVersion(BrokerError, code=ErrorCode.INVALID_UPDATE_VERSION):
    """The feature cannot have this level."""


def decide_update_features(
    image: MetadataImage,
    request: UpdateFeaturesRequest,
    *,
    supported: Mapping[str, SupportedFeature],
    node_id: int,
    kraft: KRaftVersion,
    min_insync_replicas: int = 1,
) -> Decision[UpdateFeaturesResponse]:
    """Finalize all levels or none."""
    finalized = {**image.features, KRAFT_VERSION: kraft.level}
    wanted = finalized | {update.feature: update.max_version_level for update in request.feature_updates}
    try:
        for update in request.feature_updates:
            _check(update, finalized.get(update.feature, 0))
            if update.feature != KRAFT_VERSION or update.max_version_level != kraft.level:
                _check_supported(image, update, supported, node_id)
            _check_metadata_version(update, finalized)
            _check_kraft_version(update, kraft)
        _check_dependencies(wanted)
        _check_nobody_waits_for_eligible(image, wanted)
    except BrokerError as refusal:
        message = f"No feature was updated: {refusal.message}"
        return Decision((), UpdateFeaturesResponse(error_code=refusal.code, error_message=message))
    records: list[MetadataRecord] = [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in wanted.items()
        if level != finalized.get(name, 0) and name != KRAFT_VERSION
    ]
    if upgrades_kraft_version(request, kraft.level):
        records.append(NoOpRecord())
    records += _eligible_leaders_need_a_default(image, wanted, min_insync_replicas)
    records += _old_eligible_leaders(image, wanted)
    response = UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_message=None) for update in request.feature_updates
        ],
    )
    return Decision(() if request.validate_only else tuple(records), response)


def upgrades_kraft_version(request: UpdateFeaturesRequest, current: int) -> bool:
    return any(
        update.feature == KRAFT_VERSION and update.max_version_level > current for update in request.feature_updates
    )


def _check(update: FeatureUpdateKey, current: int) -> None:
    name, level = update.feature, update.max_version_level
    if level < 0:
        raise InvalidUpdateVersion(f"{name} cannot have level {level}: levels start at 0.")
    if update.upgrade_type not in {UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE}:
        raise InvalidUpdateVersion(f"{update.upgrade_type} is no way to change {name}.")
    # Version 0 has no upgrade_type: there `allow_downgrade` permits a safe downgrade and asks for none (KIP-584).
    if level < current and update.upgrade_type == UPGRADE and not update.allow_downgrade:
        raise InvalidUpdateVersion(
            f"{name} has level {current}, and {level} is a downgrade, which must be asked for as one."
        )
    if level > current and update.upgrade_type != UPGRADE:
        raise InvalidUpdateVersion(f"{name} has level {current}, and {level} is no downgrade.")


def _check_supported(
    image: MetadataImage, update: FeatureUpdateKey, supported: Mapping[str, SupportedFeature], node_id: int
) -> None:
    _check_node(update, supported, f"controller {node_id}")
    for controller in image.controllers.values():
        if controller.id != node_id:
            _check_node(update, controller.features, f"controller {controller.id}")
    for broker in image.brokers.values():
        _check_node(update, broker.features, f"broker {broker.id}")


def _check_node(update: FeatureUpdateKey, supported: Mapping[str, SupportedFeature], node: str) -> None:
    name, level = update.feature, update.max_version_level
    known = supported.get(name)
    if known is None:
        # Level 0 is "off", and so needs no support; the node knows nothing of the feature.
        if level == 0 and not node.startswith("controller"):
            return
        raise InvalidUpdateVersion(f"{name} cannot have level {level}: {node} does not know this feature.")
    # A feature that can be on can be off, whatever its lowest level; metadata.version never is.
    lowest = known.min_level if name == METADATA_VERSION else 0
    if not lowest <= level <= known.max_level:
        raise InvalidUpdateVersion(f"{name} cannot have level {level}: {node} supports {lowest} to {known.max_level}.")


def _check_metadata_version(update: FeatureUpdateKey, finalized: Mapping[str, int]) -> None:
    if update.feature != METADATA_VERSION:
        return
    current, level = finalized.get(METADATA_VERSION, 0), update.max_version_level
    lost = [each for each in LEVELS_THAT_CHANGED_RECORDS if level < each <= current]
    if lost:
        raise InvalidUpdateVersion(
            f"{METADATA_VERSION} cannot go down from {current} to {level}: level {lost[-1]} changed what the log holds."
        )


def _check_kraft_version(update: FeatureUpdateKey, kraft: KRaftVersion) -> None:
    if update.feature != KRAFT_VERSION:
        return
    if update.max_version_level < kraft.level:
        raise InvalidUpdateVersion(f"{KRAFT_VERSION} has level {kraft.level} and never goes down.")
    if update.max_version_level > kraft.level and kraft.obstacle is not None:
        raise InvalidUpdateVersion(f"{KRAFT_VERSION} cannot have level {update.max_version_level}: {kraft.obstacle}")


def _check_dependencies(wanted: Mapping[str, int]) -> None:
    if wanted.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0 and wanted[METADATA_VERSION] < levels.ELIGIBLE_LEADER_REPLICAS:
        raise InvalidUpdateVersion(
            f"{ELIGIBLE_LEADER_REPLICAS} needs {METADATA_VERSION} {levels.ELIGIBLE_LEADER_REPLICAS} or later."
        )


def _check_nobody_waits_for_eligible(image: MetadataImage, wanted: Mapping[str, int]) -> None:
    """Without KIP-966 a partition with nobody in sync would never be led again."""
    if wanted.get(ELIGIBLE_LEADER_REPLICAS, 0) or not image.features.get(ELIGIBLE_LEADER_REPLICAS, 0):
        return
    for topic in image.topics.by_id.values():
        for number, partition in topic.partitions.items():
            if not partition.isr:
                raise InvalidUpdateVersion(
                    f"{ELIGIBLE_LEADER_REPLICAS} cannot be switched off: {topic.name}-{number} has nobody in sync."
                )


def _old_eligible_leaders(image: MetadataImage, wanted: Mapping[str, int]) -> list[MetadataRecord]:
    """Nobody looks after who is eligible while KIP-966 is off: it must not be found when that is on again."""
    if wanted.get(ELIGIBLE_LEADER_REPLICAS, 0) == image.features.get(ELIGIBLE_LEADER_REPLICAS, 0):
        return []
    partitions = (each for topic in image.topics.by_id.values() for each in topic.partitions.values())
    return [ClearElrRecord(topic_name="")] if any(each.elr or each.last_known_elr for each in partitions) else []


def _eligible_leaders_need_a_default(
    image: MetadataImage, wanted: Mapping[str, int], min_insync_replicas: int
) -> list[MetadataRecord]:
    """With KIP-966 on, all brokers must agree on min.insync.replicas: it moves from their files to the log."""
    if not wanted.get(ELIGIBLE_LEADER_REPLICAS) or image.features.get(ELIGIBLE_LEADER_REPLICAS):
        return []
    records: list[MetadataRecord] = [
        ConfigRecord(resource_type=kind, resource_name=name, name=MIN_INSYNC_REPLICAS, value=None)
        for (kind, name), values in image.configs.items()
        if kind == BROKER_CONFIG and name != CLUSTER_DEFAULT and MIN_INSYNC_REPLICAS in values
    ]
    if MIN_INSYNC_REPLICAS not in image.config(BROKER_CONFIG, CLUSTER_DEFAULT):
        records.append(
            ConfigRecord(
                resource_type=BROKER_CONFIG,
                resource_name=CLUSTER_DEFAULT,
                name=MIN_INSYNC_REPLICAS,
                value=str(min_insync_replicas),
            )
        )
    return records
