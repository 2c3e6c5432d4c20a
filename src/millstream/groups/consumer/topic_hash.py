"""A hash over the topics that a group reads, in KIP-1101's way: XXH3 over ids, names, partition counts and racks.

It is stored with the group's epoch. A different hash later means that topics were created, deleted or extended, and
that the group needs a new target assignment. It is Kafka's own hash, byte for byte, so that a group which changes hands
between the two does not rebalance for nothing.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.metadata.image import MetadataImage, TopicImage

# What is hashed is little-endian; a text is its UTF-16 units, followed by how many they are.
_INT = Struct("<i")
_LONG = Struct("<q")
_VERSION = b"\x00"

# By topic's name: the image that was hashed, and its hash. Images never change, so the same one has the same hash.
TopicHashes = dict[str, tuple["TopicImage", int]]


def group_hash(topics: Iterable[str], image: MetadataImage, known: TopicHashes) -> int:
    """The hash of those of the topics that exist; 0 if none does."""
    existing = []
    for topic in topics:
        if topic in image.topics.by_name:
            existing.append(topic)
        else:
            known.pop(topic, None)
    existing.sort(key=_utf16)
    if not existing:
        return 0
    return _signed(xxh3_64_intdigest(b"".join(_LONG.pack(_topic_hash(topic, image, known)) for topic in existing)))


def _topic_hash(name: str, image: MetadataImage, known: TopicHashes) -> int:
    topic = image.topics.by_name[name]
    found = known.get(name)
    if found is not None and found[0] is topic:
        return found[1]
    value = topic_hash(topic, image)
    known[name] = (topic, value)
    return value


def topic_hash(topic: TopicImage, image: MetadataImage) -> int:
    parts = [_VERSION, topic.id[7::-1], topic.id[:7:-1], _text(topic.name), _INT.pack(len(topic.partitions))]
    for index in range(len(topic.partitions)):
        parts.append(_INT.pack(index))
        replicas = (image.brokers.get(replica) for replica in topic.partitions[index].replicas)
        racks = [broker.rack for broker in replicas if broker is not None and broker.rack is not None]
        for rack in sorted(racks, key=_utf16):
            parts.append(_INT.pack(len(rack.encode("utf-16-le", "surrogatepass")) // 2))
            parts.append(_text(rack))
    return _signed(xxh3_64_intdigest(b"".join(parts)))


def _utf16(text: str) -> bytes:
    """For sorting as Java does."""
    return text.encode("utf-16-be", "surrogatepass")


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT.pack(len(units) // 2)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number
