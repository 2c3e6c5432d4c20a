from __future__ import annotations

from millstream.protocol.declare import String, message


@message(record_type=28, versions="0", flexible="0+")
class ClearElrRecord:
    """Empties the eligible leader replicas of a topic, or of all topics if its name is empty (KIP-966)."""

    topic_name: String
