from __future__ import annotations

from millstream.protocol.declare import Int16, message


@message(versions="0", flexible="0+")
class KRaftVersionRecord:
    """A control record of the metadata log: the quorum's kraft.version from here on (KIP-853)."""

    version: Int16
    k_raft_version: Int16
