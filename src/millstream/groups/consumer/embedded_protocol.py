"""What classic consumers write into the opaque bytes of JoinGroup and SyncGroup, read and written by the broker.

An int16 version comes first. Newer versions only append, so one that is not known here is read as the newest known one.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from millstream.protocol.codec import decode_prefix, encode
from millstream.protocol.errors import MalformedMessage
from millstream.protocol.messages.data.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from millstream.protocol.messages.data.consumer_protocol_subscription import ConsumerProtocolSubscription

if TYPE_CHECKING:
    from millstream.groups.assignors.spec import Partitions
    from millstream.metadata.image import MetadataImage
    from millstream.protocol.uuid import Uuid

VERSION_MAX = 3
_VERSION = Struct(">h")


def read_version(data: bytes) -> int:
    """MalformedMessage if there is none."""
    if len(data) < _VERSION.size or _VERSION.unpack_from(data)[0] < 0:
        raise MalformedMessage("the consumer's metadata has no version")
    version: int = _VERSION.unpack_from(data)[0]
    return min(version, VERSION_MAX)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    return decode_prefix(ConsumerProtocolSubscription, read_version(data), data, _VERSION.size)[0]


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    return decode_prefix(ConsumerProtocolAssignment, read_version(data), data, _VERSION.size)[0]


def write_assignment(partitions: Partitions, image: MetadataImage, version: int) -> bytes:
    """Topics that are gone by now are left out."""
    by_id = image.topics.by_id
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=by_id[topic_id].name, partitions=sorted(indexes))
            for topic_id, indexes in partitions.items()
            if topic_id in by_id
        ]
    )
    return _VERSION.pack(version) + encode(assignment, version)


def partitions_by_id(assignment: ConsumerProtocolAssignment, image: MetadataImage) -> Partitions:
    """What it assigns, of topics that exist."""
    by_name = image.topics.by_name
    found: dict[Uuid, frozenset[int]] = {}
    for topic in assignment.assigned_partitions:
        if topic.topic in by_name:
            found[by_name[topic.topic].id] = frozenset(topic.partitions)
    return found
