from __future__ import annotations

from millstream.protocol.declare import Int32, Int64, String, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class Voter:
    voter_id: Int32


@message(versions="0-1", flexible="0+")
class QuorumStateData:
    """The file `quorum-state` in the metadata log's directory, as JSON: whom this node has voted for.

    v0 belongs to static voters, v1 to dynamic ones (KIP-853).
    """

    cluster_id: String = wire("0", default="")
    leader_id: Int32 = wire(default=-1)
    leader_epoch: Int32 = wire(default=-1)
    voted_id: Int32 = wire(default=-1)
    voted_directory_id: UuidField = wire("1+", default=ZERO_UUID)
    applied_offset: Int64 = wire("0", default=0)
    current_voters: list[Voter] | None = wire("0", default=[])
