from __future__ import annotations

from millstream.protocol.declare import Int64, String, message


@message(coordinator_type=16, versions="0")
class ConsumerGroupRegularExpressionKey:
    """A pattern that members of a KIP-848 group subscribe by."""

    group_id: String
    regular_expression: String


@message(coordinator_type=16, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """The topics that the pattern matched, and at which version of the metadata."""

    topics: list[String]
    version: Int64
    timestamp: Int64
