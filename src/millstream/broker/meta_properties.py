"""`meta.properties`: the file at the root of every log directory that says whose it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.protocol.uuid import Uuid

if TYPE_CHECKING:
    from millstream.runtime.ports import Disk

META_PROPERTIES = "meta.properties"


class StorageRefused(Exception):
    """The directory is not for this node, or not for this software; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Version 1. `directory_id` is None in directories from before Kafka 3.7."""

    cluster_id: str
    node_id: int
    directory_id: Uuid | None

    def encode(self) -> bytes:
        lines = [f"node.id={self.node_id}", "version=1", f"cluster.id={self.cluster_id}"]
        if self.directory_id is not None:
            lines.insert(1, f"directory.id={self.directory_id}")
        return "".join(f"{line}\n" for line in lines).encode()


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    """What the directory says of itself; None if it says nothing."""
    path = f"{directory}/{META_PROPERTIES}"
    if not disk.exists(path):
        return None
    lines = (line.strip() for line in disk.read_file(path).decode("utf-8", "replace").splitlines())
    fields = {
        name.strip(): value.strip()
        for name, equals, value in (line.partition("=") for line in lines if line and line[0] not in "#!")
        if equals
    }
    if fields.get("version") == "0":
        raise StorageRefused(
            f"{path} was written by a broker that used ZooKeeper. "
            "Migrate the cluster to KRaft with Apache Kafka 3.9 first."
        )
    if fields.get("version") != "1":
        raise StorageRefused(f"{path} has the unknown version {fields.get('version')}.")
    try:
        directory_id = fields.get("directory.id")
        return MetaProperties(
            cluster_id=fields["cluster.id"],
            node_id=int(fields["node.id"]),
            directory_id=None if directory_id is None else Uuid.parse(directory_id),
        )
    except (KeyError, ValueError) as error:
        raise StorageRefused(f"{path} is incomplete or broken: {error}") from error
