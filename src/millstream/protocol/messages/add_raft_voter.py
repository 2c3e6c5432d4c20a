from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, String, UInt16, UuidField, message, struct, wire


@struct
class Listener:
    name: String
    host: String
    port: UInt16


@message(key=80, versions="0-1", flexible="0+", listeners=("controller", "broker"))
class AddRaftVoterRequest:
    """Asks the active controller to make a caught-up observer a voter (KIP-853). v1: answer before the commit, on
    request.
    """

    cluster_id: String | None
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: UuidField
    listeners: list[Listener]
    ack_when_committed: Bool = wire("1+", default=True)


@message(key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    """Says whether the node has become a voter."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
