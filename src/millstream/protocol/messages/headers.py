from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, message, wire


@message(versions="1-2", flexible="2+")
class RequestHeader:
    """Before every request. v2 adds tagged fields."""

    request_api_key: Int16
    request_api_version: Int16
    correlation_id: Int32
    client_id: String | None = wire(flexible="none")


@message(versions="0-1", flexible="1+")
class ResponseHeader:
    """Before every response. v1 adds tagged fields; ApiVersions keeps v0."""

    correlation_id: Int32
