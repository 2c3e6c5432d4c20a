from __future__ import annotations

from millstream.protocol.declare import UuidField, message


@message(record_type=9, versions="0", flexible="0+")
class RemoveTopicRecord:
    """Removes a topic and all its partitions."""

    topic_id: UuidField
