from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, UuidField, message, struct, wire


@struct
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: String


@message(key=92, versions="0", flexible="0+", listeners=("broker",))
class DeleteShareGroupOffsetsRequest:
    """Forgets where a share group without members stands in the topics that are named (KIP-932)."""

    group_id: String
    topics: list[DeleteShareGroupOffsetsRequestTopic]


@struct
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: String
    topic_id: UuidField
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    """One result per topic, and one for the group."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic]
