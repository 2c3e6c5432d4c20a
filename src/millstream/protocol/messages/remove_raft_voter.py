from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, UuidField, message, wire


@message(key=81, versions="0", flexible="0+", listeners=("controller", "broker"))
class RemoveRaftVoterRequest:
    """Asks the active controller to remove a voter (KIP-853)."""

    cluster_id: String | None
    voter_id: Int32
    voter_directory_id: UuidField


@message(key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    """Says whether the node has ceased to be a voter."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
