from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, UInt16, UuidField, message, struct


@struct
class Endpoint:
    name: String
    host: String
    port: UInt16


@struct
class KRaftVersionFeature:
    min_supported_version: Int16
    max_supported_version: Int16


@struct
class Voter:
    voter_id: Int32
    voter_directory_id: UuidField
    endpoints: list[Endpoint]
    k_raft_version_feature: KRaftVersionFeature


@message(versions="0", flexible="0+")
class VotersRecord:
    """A control record of the metadata log: the voters from here on (KIP-853)."""

    version: Int16
    voters: list[Voter]
