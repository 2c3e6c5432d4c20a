from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class Voter:
    voter_id: Int32
    voter_directory_id: UuidField = wire("1+", default=ZERO_UUID)


@message(versions="0-1", flexible="0+")
class LeaderChangeMessage:
    """A control record of the metadata log: a leader starts its epoch with it (KIP-595). v1: KIP-853, directories."""

    version: Int16
    leader_id: Int32
    voters: list[Voter]
    granting_voters: list[Voter]
