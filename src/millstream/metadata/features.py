"""The features that this software knows, and the levels of each that it can work with.

What a new directory finalizes is in `broker/storage_format.py`: only features whose APIs are handled. A directory that
comes from Apache Kafka may have finalized more; such levels are kept, because clients may rely on them and
Apache Kafka will look for them when it takes the directory back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millstream.metadata.image import METADATA_VERSION, SupportedFeature
from millstream.metadata.metadata_version import LEVEL_MAX, LEVEL_MIN

if TYPE_CHECKING:
    from collections.abc import Mapping

KRAFT_VERSION: Final = "kraft.version"
GROUP_VERSION: Final = "group.version"
TRANSACTION_VERSION: Final = "transaction.version"

SUPPORTED_FEATURES: Final[Mapping[str, SupportedFeature]] = {
    "eligible.leader.replicas.version": SupportedFeature(0, 1),
    GROUP_VERSION: SupportedFeature(0, 1),
    KRAFT_VERSION: SupportedFeature(0, 1),
    METADATA_VERSION: SupportedFeature(LEVEL_MIN, LEVEL_MAX),
    # 1: records of `__transaction_state` with tagged fields. 2: KIP-890, every end of a transaction bumps the epoch.
    TRANSACTION_VERSION: SupportedFeature(0, 2),
}


def registered_features(finalized: Mapping[str, int]) -> dict[str, SupportedFeature]:
    """What a node registers: what it supports, widened to the levels that its directory brought along.

    All but metadata.version: a newer one stands for records that nobody here can read, and who says so is not let in.
    """
    features = dict(SUPPORTED_FEATURES)
    for name, level in finalized.items():
        if name == METADATA_VERSION:
            continue
        known = features.get(name, SupportedFeature(0, level))
        features[name] = SupportedFeature(known.min_level, max(known.max_level, level))
    return features
