"""What a directory says about itself, and how a new one is made.

Every log directory holds `meta.properties`: the cluster, the node, the directory's own id (KIP-858). The directory of
the metadata log also holds `bootstrap.checkpoint`, the first records of the cluster; and if its quorum is dynamic, a
first snapshot with the voters. All of it is as `kafka.tools.StorageTool format` writes it.

A lone node formats empty directories by itself, dynamic as with `--standalone`. The levels are those that Apache Kafka
4.3 gives a new cluster, of the features whose APIs are handled: no share or streams version until those exist. A
directory that exists keeps the levels it has.

What must not be opened is refused with a sentence that says why: another cluster's or another node's directory, a newer
metadata.version, access rules or credentials that nobody would enforce.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from millstream.broker.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    StorageRefused,
    read_meta_properties,
)
from millstream.broker.metadata_replay import METADATA_DIRECTORY
from millstream.broker.metadata_snapshot import (
    BOOTSTRAP_CHECKPOINT,
    FIRST_SNAPSHOT,
    read_snapshot,
    snapshot_batches,
)
from millstream.metadata.bootstrap import feature_records
from millstream.metadata.delta import apply
from millstream.metadata.features import GROUP_VERSION, TRANSACTION_VERSION
from millstream.metadata.image import METADATA_VERSION
from millstream.metadata.metadata_version import LEVEL_MAX, LEVEL_MIN, NAMES
from millstream.metadata.partition_change import ELIGIBLE_LEADER_REPLICAS
from millstream.quorum.voters import DYNAMIC, Voter, VoterEndpoint, VoterSet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.metadata.image import MetadataImage
    from millstream.metadata.record_types import MetadataRecord
    from millstream.protocol.uuid import Uuid
    from millstream.runtime.ports import Disk, Ports

__all__ = [
    "NotFormatted",
    "Storage",
    "StorageLayout",
    "StorageRefused",
    "check_openable",
    "check_voters",
    "format_storage",
    "load_storage",
    "open_storage",
]

DEFAULT_FEATURES: Mapping[str, int] = {
    METADATA_VERSION: LEVEL_MAX,
    ELIGIBLE_LEADER_REPLICAS: 1,
    GROUP_VERSION: 1,
    TRANSACTION_VERSION: 2,
}


class NotFormatted(StorageRefused):
    """No log directory holds a meta.properties."""


@dataclass(frozen=True, slots=True)
class StorageLayout:
    """Which directories there are; the metadata log is in the first unless `metadata.log.dir` says otherwise."""

    log_dirs: tuple[str, ...]
    metadata_log_dir: str

    @classmethod
    def of(cls, log_dirs: Sequence[str], metadata_log_dir: str | None = None) -> StorageLayout:
        return cls(tuple(log_dirs), metadata_log_dir or log_dirs[0])

    @property
    def all_dirs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.metadata_log_dir, *self.log_dirs)))


@dataclass(frozen=True, slots=True)
class Storage:
    """Formatted directories, as they describe themselves."""

    layout: StorageLayout
    cluster_id: str
    node_id: int
    directory_ids: Mapping[str, Uuid]
    bootstrap: tuple[MetadataRecord, ...]

    @property
    def metadata_directory_id(self) -> Uuid:
        return self.directory_ids[self.layout.metadata_log_dir]

    @property
    def log_dir_ids(self) -> tuple[Uuid, ...]:
        """The ids of the directories that hold partitions."""
        return tuple(self.directory_ids[path] for path in self.layout.log_dirs)


def format_storage(
    ports: Ports,
    layout: StorageLayout,
    *,
    cluster_id: str,
    node_id: int,
    controller_endpoint: VoterEndpoint | None = None,
    initial_voters: VoterSet | None = None,
    features: Mapping[str, int] = DEFAULT_FEATURES,
) -> Storage:
    """Make empty directories those of a node.

    Dynamic and alone in its quorum if the controller's endpoint is given, as with `--standalone`; one of several if the
    initial voters are (`--initial-controllers`: every one of them is formatted with the same). With neither, who votes
    is for a setting to say, or for the controllers that the node asks.
    """
    disk = ports.disk
    for path in layout.all_dirs:
        if disk.exists(f"{path}/{META_PROPERTIES}"):
            raise StorageRefused(f"{path} is formatted already.")
    _check_level(features.get(METADATA_VERSION, 0))
    ids = {path: ports.random.uuid() for path in layout.all_dirs}
    voters = initial_voters
    own = None if voters is None else voters.find(node_id)
    if own is not None:
        # The others know this voter by the id that its directory was promised.
        ids[layout.metadata_log_dir] = own.directory_id
    bootstrap = feature_records(features)
    metadata_dir = layout.metadata_log_dir
    now_ms = ports.clock.wall_ms()
    disk.make_directory(metadata_dir)
    level = features[METADATA_VERSION]
    disk.replace_file(f"{metadata_dir}/{BOOTSTRAP_CHECKPOINT}", _snapshot_file(bootstrap, level, now_ms, 0, None))
    if controller_endpoint is not None:
        voters = VoterSet((Voter(node_id, ids[metadata_dir], (controller_endpoint,)),))
    if voters is not None:
        directory = f"{metadata_dir}/{METADATA_DIRECTORY}"
        disk.make_directory(directory)
        disk.replace_file(f"{directory}/{FIRST_SNAPSHOT.file_name}", _snapshot_file((), level, now_ms, now_ms, voters))
    # meta.properties goes last, that of the metadata directory last of all: what has one is complete.
    for path in reversed(layout.all_dirs):
        disk.make_directory(path)
        disk.replace_file(f"{path}/{META_PROPERTIES}", MetaProperties(cluster_id, node_id, ids[path]).encode())
    return Storage(layout, cluster_id, node_id, ids, bootstrap)


def load_storage(
    ports: Ports, layout: StorageLayout, *, node_id: int | None = None, cluster_id: str | None = None
) -> Storage:
    """Read what the directories say, and refuse what does not belong together.

    A directory that is new beside formatted ones joins them, as a disk added to a broker does in Kafka.
    """
    disk = ports.disk
    found = {path: read_meta_properties(disk, path) for path in layout.all_dirs}
    main = found[layout.metadata_log_dir]
    if main is None:
        formatted = [path for path, each in found.items() if each is not None]
        if formatted:
            raise StorageRefused(
                f"{layout.metadata_log_dir} should hold the metadata log but is not formatted, unlike {formatted[0]}."
            )
        raise NotFormatted(f"{layout.metadata_log_dir} is not formatted.")
    if cluster_id is not None and main.cluster_id != cluster_id:
        raise StorageRefused(
            f"{layout.metadata_log_dir} belongs to the cluster {main.cluster_id}, and not to {cluster_id}."
        )
    if node_id is not None and main.node_id != node_id:
        raise StorageRefused(f"{layout.metadata_log_dir} belongs to node {main.node_id}, and not to node {node_id}.")
    ids: dict[str, Uuid] = {}
    for path, each in found.items():
        ids[path] = _completed(ports, path, each, main)
    if len(set(ids.values())) != len(ids):
        raise StorageRefused("Two log directories have the same directory.id: one is a copy of the other.")
    return Storage(layout, main.cluster_id, main.node_id, ids, _read_bootstrap(disk, layout.metadata_log_dir))


def open_storage(
    ports: Ports,
    layout: StorageLayout,
    *,
    node_id: int | None,
    cluster_id: str | None = None,
    controller_endpoint: VoterEndpoint | None,
    features: Mapping[str, int] = DEFAULT_FEATURES,
) -> Storage:
    """Load the directories, or format them if all are empty: what a node that is alone does at its start."""
    try:
        return load_storage(ports, layout, node_id=node_id, cluster_id=cluster_id)
    except NotFormatted:
        for path in layout.all_dirs:
            _check_empty(ports.disk, path)
    return format_storage(
        ports,
        layout,
        cluster_id=cluster_id or str(ports.random.uuid()),
        node_id=1 if node_id is None else node_id,
        controller_endpoint=controller_endpoint,
        features=features,
    )


def check_openable(image: MetadataImage, bootstrap: Sequence[MetadataRecord], *, insecure: bool) -> None:
    """Refuse metadata that this software would not honour."""
    if METADATA_VERSION not in image.features:
        image, _ = apply(image, bootstrap)
    _check_level(image.metadata_version)
    if image.holds_secrets and not insecure:
        kinds = [("access rules", image.acls), ("SCRAM credentials", image.scram), ("delegation tokens", image.tokens)]
        held = " and ".join(name for name, entries in kinds if entries)
        raise StorageRefused(
            f"The cluster holds {held}, which are not enforced yet: everybody could do everything. "
            "Start with --insecure if that is acceptable; nothing of them is lost."
        )


def check_voters(voters: VoterSet, kraft_version: int, node_id: int, directory_id: Uuid) -> None:
    """Refuse a quorum that this software does not know, or whose only vote is this node's from another directory.

    Beside other voters such a node may start: it follows them without a vote, until it is made a voter again.
    """
    if kraft_version > DYNAMIC:
        raise StorageRefused(f"kraft.version {kraft_version} is newer than {DYNAMIC}, the newest one known here.")
    if voters.ids() == (node_id,) and not voters.includes(node_id, directory_id):
        raise StorageRefused(
            f"Node {node_id} votes in the metadata quorum with another directory than {directory_id}: "
            "the disk was replaced, or meta.properties belongs elsewhere."
        )


def _check_level(level: int) -> None:
    if level > LEVEL_MAX:
        raise StorageRefused(
            f"metadata.version {level} is newer than {LEVEL_MAX} ({NAMES[LEVEL_MAX]}), the newest one known here."
        )
    if level < LEVEL_MIN:
        raise StorageRefused(
            f"metadata.version {level} is older than {LEVEL_MIN} ({NAMES[LEVEL_MIN]}), the oldest that Kafka 4 opens."
        )


def _completed(ports: Ports, path: str, found: MetaProperties | None, main: MetaProperties) -> Uuid:
    """The directory's id; one is given to a new directory, and to one from before directories had ids."""
    if found is None:
        _check_empty(ports.disk, path)
        found = replace(main, directory_id=None)
    if (found.cluster_id, found.node_id) != (main.cluster_id, main.node_id):
        raise StorageRefused(
            f"{path} belongs to node {found.node_id} of the cluster {found.cluster_id}; "
            f"the other directories belong to node {main.node_id} of {main.cluster_id}."
        )
    if found.directory_id is not None:
        return found.directory_id
    directory_id = ports.random.uuid()
    ports.disk.make_directory(path)
    ports.disk.replace_file(f"{path}/{META_PROPERTIES}", replace(found, directory_id=directory_id).encode())
    return directory_id


def _check_empty(disk: Disk, path: str) -> None:
    # A lock, the residue of a format that was interrupted, and what mkfs leaves behind don't count.
    ignored = {".lock", "lost+found", BOOTSTRAP_CHECKPOINT, METADATA_DIRECTORY, META_PROPERTIES}
    foreign = [name for name in disk.list_directory(path) if name.removesuffix(".tmp") not in ignored]
    if METADATA_DIRECTORY in disk.list_directory(path):
        inside = disk.list_directory(f"{path}/{METADATA_DIRECTORY}")
        foreign += [f"{METADATA_DIRECTORY}/{name}" for name in inside if not name.startswith(FIRST_SNAPSHOT.file_name)]
    if foreign:
        raise StorageRefused(f"{path} has no meta.properties but is not empty: it holds {foreign[0]}.")


def _read_bootstrap(disk: Disk, directory: str) -> tuple[MetadataRecord, ...]:
    path = f"{directory}/{BOOTSTRAP_CHECKPOINT}"
    if disk.exists(path):
        return tuple(read_snapshot(disk.read_file(path)).records)
    # Kafka assumes this where the file is missing, too; it only matters to a log without any record.
    return feature_records(DEFAULT_FEATURES)


def _snapshot_file(
    records: Sequence[MetadataRecord], level: int, now_ms: int, last_contained_ms: int, voters: VoterSet | None
) -> bytes:
    batches = snapshot_batches(
        records, level=level, epoch=0, last_contained_ms=last_contained_ms, now_ms=now_ms, voters=voters
    )
    return b"".join(batches)
