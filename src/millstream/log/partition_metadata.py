"""`partition.metadata`: which topic id a partition's folder belongs to.

version: 0
topic_id: <id>
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.log import names
from millstream.protocol.errors import InconsistentTopicId
from millstream.protocol.uuid import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from millstream.log.log import Log


def encode(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {topic_id}".encode("ascii")


def decode(content: bytes) -> Uuid | None:
    """The topic id; None if the file was not written to its end."""
    try:
        fields = dict(line.split(": ", 1) for line in content.decode("ascii").splitlines() if line)
        if int(fields["version"]) != 0:
            return None
        topic_id = Uuid.parse(fields["topic_id"])
    except (ValueError, KeyError):
        return None
    return None if topic_id == ZERO_UUID else topic_id


def ensure(log: Log, *, exists: bool) -> None:
    """Take the topic id from the file, or write there the one that the log was given.

    Two that differ mean that a topic of the same name was deleted and made again while this folder was not looking:
    its records must not become the new topic's.
    """
    path = f"{log.directory}/{names.PARTITION_METADATA}"
    found = decode(log.disk.read_file(path)) if exists else None
    if found is not None:
        if log.topic_id is not None and found != log.topic_id:
            raise InconsistentTopicId(f"{log.directory} belongs to the topic {found}, not to {log.topic_id}")
        log.topic_id = found
    elif log.topic_id is not None and log.topic_id != ZERO_UUID:
        file = log.disk.create(path)
        try:
            file.append(encode(log.topic_id))
        finally:
            file.close()
        log.unsynced.wrote(path, names_changed=True)
