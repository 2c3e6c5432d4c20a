from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class DeleteTopicState:
    name: String | None = wire(default=None)
    topic_id: UuidField


@message(key=20, versions="1-6", flexible="4+", listeners=("broker", "controller"))
class DeleteTopicsRequest:
    """Deletes topics, from v6 on by name or by id (KIP-516). v5: KIP-599, may be throttled."""

    topics: list[DeleteTopicState] = wire("6+", default=[])
    topic_names: list[String] = wire("0-5", default=[])
    timeout_ms: Int32


@struct
class DeletableTopicResult:
    name: String | None = wire(nullable="6+")
    topic_id: UuidField = wire("6+", default=ZERO_UUID)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire("5+", default=None)


@message(key=20, versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    """One result per topic; the data goes in the background. v3: TOPIC_DELETION_DISABLED. v5: a message."""

    throttle_time_ms: Int32 = wire(default=0)
    responses: list[DeletableTopicResult]
