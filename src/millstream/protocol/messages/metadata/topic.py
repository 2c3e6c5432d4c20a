from __future__ import annotations

from millstream.protocol.declare import String, UuidField, message


@message(record_type=2, versions="0", flexible="0+")
class TopicRecord:
    """Creates a topic: name and id. Its partitions follow as records of their own."""

    name: String
    topic_id: UuidField
