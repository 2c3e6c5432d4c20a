from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, UInt16, UuidField, message, struct, wire


@struct
class Listener:
    name: String
    host: String
    port: UInt16


@struct
class KRaftVersionFeature:
    min_supported_version: Int16
    max_supported_version: Int16


@message(key=82, versions="0", flexible="0+", listeners=("controller",))
class UpdateRaftVoterRequest:
    """A voter tells the leader its new addresses or supported kraft.version levels (KIP-853)."""

    cluster_id: String | None
    current_leader_epoch: Int32
    voter_id: Int32
    voter_directory_id: UuidField
    listeners: list[Listener]
    k_raft_version_feature: KRaftVersionFeature


@struct
class CurrentLeader:
    leader_id: Int32 = wire(default=-1)
    leader_epoch: Int32 = wire(default=-1)
    host: String
    port: Int32


@message(key=82, versions="0", flexible="0+")
class UpdateRaftVoterResponse:
    """Says whether the voter's entry was changed, and where the leader is."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    current_leader: CurrentLeader = wire(default=CurrentLeader(host="", port=0), tag=0)
