from __future__ import annotations

from millstream.protocol.declare import Int16, String, message


@message(record_type=12, versions="0", flexible="0+")
class FeatureLevelRecord:
    """Sets a feature's level; 0 removes it. A log or snapshot starts with the one of metadata.version."""

    name: String
    feature_level: Int16
