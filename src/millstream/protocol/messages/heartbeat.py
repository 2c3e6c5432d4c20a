from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, message, wire


@message(key=12, versions="0-4", flexible="4+", listeners=("broker",))
class HeartbeatRequest:
    """A classic member keeps its place in the group. v3: KIP-345, static members."""

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = wire("3+", default=None)


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """All is well, or REBALANCE_IN_PROGRESS: join again."""

    throttle_time_ms: Int32 = wire("1+", default=0)
    error_code: Int16 = wire(default=0)
