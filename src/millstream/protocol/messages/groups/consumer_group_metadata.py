from __future__ import annotations

from millstream.protocol.declare import Int32, Int64, String, message, wire


@message(coordinator_type=3, versions="0")
class ConsumerGroupMetadataKey:
    """A KIP-848 group."""

    group_id: String


@message(coordinator_type=3, versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    """The group's epoch. KIP-1101: a hash of the subscribed topics tells when they have changed."""

    epoch: Int32
    metadata_hash: Int64 = wire(default=0, tag=0)
