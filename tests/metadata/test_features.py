"""What a node says that it supports: its own, and what the cluster has finalized, but no records it cannot read."""

from __future__ import annotations

from millstream.metadata.features import SUPPORTED_FEATURES, registered_features
from millstream.metadata.image import METADATA_VERSION, SupportedFeature


def test_levels_that_a_directory_brought_along_are_registered() -> None:
    found = registered_features({"share.version": 1, "transaction.version": 2})
    assert found == {**SUPPORTED_FEATURES, "share.version": SupportedFeature(0, 1)}


def test_a_newer_metadata_version_is_not() -> None:
    """A cluster that has it would let this node in, to stop at the first record that it cannot read."""
    newest = SUPPORTED_FEATURES[METADATA_VERSION].max_level
    assert registered_features({METADATA_VERSION: newest + 1}) == SUPPORTED_FEATURES
