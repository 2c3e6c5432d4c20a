"""All partitions that this broker hosts, kept in step with the metadata image.

`apply` is called once for each new image. It opens and creates logs, makes leaders and followers, hands changed
settings to logs, and renames the logs of deleted topics, and of replicas that were moved away, out of the way (they are
removed in the background).

A log directory that fails is taken offline as a whole, as in Kafka (KIP-112, KIP-858): its logs are written to no more,
heartbeats tell the controller, and new partitions go elsewhere. Not the directory of the metadata, nor the last one
that is left: there each partition fails by itself, and what can still be read is served.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from millstream.broker.directory_reports import DirectoryReports
from millstream.broker.log_settings import log_config
from millstream.broker.partition import Partition
from millstream.log.directory import LIMITS
from millstream.log.log import Log
from millstream.metadata.image import BROKER_CONFIG, NO_LEADER, TOPIC_CONFIG
from millstream.protocol.uuid import DIRECTORY_LOST
from millstream.replication.follower import PartitionFollower
from millstream.replication.leader import PartitionLeader
from millstream.runtime.logs import Logger
from millstream.settings import MILLSTREAM_ACKS_FSYNC, MIN_INSYNC_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.broker.node import Node
    from millstream.log.directory import LogDirectory
    from millstream.metadata.delta import Changes
    from millstream.metadata.image import MetadataImage, PartitionImage, TopicImage
    from millstream.protocol.uuid import Uuid

_log = Logger("millstream.partitions")


class RoleListener(Protocol):
    """A coordinator, which lives where its partitions are led."""

    def elected(self, partition: Partition) -> None: ...
    def resigned(self, partition: Partition) -> None: ...


@dataclass(slots=True)
class HostedTopic:
    """The partitions of one topic that live here."""

    name: str
    id: Uuid
    partitions: dict[int, Partition] = field(default_factory=dict)


class Partitions:
    """The hosted partitions, by topic name and by topic id."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.by_name: dict[str, HostedTopic] = {}
        self.by_id: dict[Uuid, HostedTopic] = {}
        # By topic: who wants to know that this broker leads, or no longer leads, one of its partitions.
        self.role_listeners: dict[str, RoleListener] = {}
        self._reports = DirectoryReports(node)
        # Whether what is opened may be old; later only what is new to this broker is.
        self._is_loading = False

    def __iter__(self) -> Iterator[Partition]:
        for topic in self.by_name.values():
            yield from topic.partitions.values()

    def get(self, topic: str, index: int) -> Partition | None:
        hosted = self.by_name.get(topic)
        return None if hosted is None else hosted.partitions.get(index)

    @property
    def count(self) -> int:
        return sum(len(topic.partitions) for topic in self.by_name.values())

    @property
    def offline_count(self) -> int:
        return sum(partition.log.is_offline for partition in self)

    @property
    def led_count(self) -> int:
        return sum(partition.leader is not None for partition in self)

    @property
    def under_replicated_count(self) -> int:
        return sum(len(leader.isr) < len(leader.replicas) for leader in self._leaders())

    @property
    def under_min_isr_count(self) -> int:
        return sum(not leader.has_enough_in_sync for leader in self._leaders())

    def _leaders(self) -> Iterator[PartitionLeader]:
        return (partition.leader for partition in self if partition.leader is not None)

    async def stop(self) -> None:
        """Report nothing any more."""
        await self._reports.stop()

    # --- following the image

    def apply(self, image: MetadataImage, changes: Changes) -> None:
        """Follow one change of the metadata, which may be what several records did together."""
        # Settings first: whoever is told of a smaller ISR must know by then how many replicas have to be in sync.
        changed = self._follow_broker_settings(image, changes)
        for deleted in changes.topics_deleted:
            self._delete(deleted)
        for created in changes.topics_created:
            self._host(created, created.partitions.keys(), image)
        for name, indexes in changes.partitions_changed.items():
            topic = image.topics.by_name.get(name)
            if topic is not None:
                self._host(topic, indexes, image)
        self._follow_topic_settings(image, changed)
        self._node.replica_fetchers.brokers_changed(changes.brokers)
        self._node.isr_changes.brokers_changed(changes.brokers)

    def load(self, image: MetadataImage) -> None:
        """Host everything that a first image says lives here."""
        self._is_loading = True
        for topic in image.topics.by_name.values():
            self._host(topic, topic.partitions.keys(), image)
        self._is_loading = False

    def _follow_broker_settings(self, image: MetadataImage, changes: Changes) -> dict[str, None]:
        """The hosted topics whose settings may have changed."""
        changed: dict[str, None] = {}
        for resource_type, name in changes.configs:
            if resource_type == TOPIC_CONFIG:
                changed[name] = None
            elif resource_type == BROKER_CONFIG and name in ("", str(self._node.node_id)):
                self._node.follow_broker_settings(image)
                self._node.replica_fetchers.settings_changed()
                changed |= dict.fromkeys(self.by_name)
        return changed

    def _follow_topic_settings(self, image: MetadataImage, changed: Iterable[str]) -> None:
        for name in changed:
            hosted = self.by_name.get(name)
            topic = image.topics.by_name.get(name)
            if hosted is None or topic is None:
                continue
            settings = self._node.topic_settings(image, name)
            config = log_config(settings)
            for partition in hosted.partitions.values():
                partition.log.reconfigure(config)
            self._host(topic, topic.partitions.keys(), image)

    def _host(self, topic: TopicImage, indexes: Iterable[int], image: MetadataImage) -> None:
        node_id = self._node.node_id
        mine: list[int] = []
        hosted = self.by_id.get(topic.id)
        for index in indexes:
            if node_id in topic.partitions[index].replicas:
                mine.append(index)
            elif hosted is not None and index in hosted.partitions:
                self._move_away(hosted, index)
        if not mine:
            return
        hosted = self.by_id.get(topic.id)
        if hosted is None:
            hosted = self.by_id[topic.id] = self.by_name[topic.name] = HostedTopic(topic.name, topic.id)
        settings = self._node.topic_settings(image, topic.name)
        for index in mine:
            partition = hosted.partitions.get(index)
            if partition is None:
                log = self._open_log(topic, index, topic.partitions[index], image)
                partition = hosted.partitions[index] = Partition(
                    topic.name, index, topic.id, log, self._node.wakeups, self._went_offline
                )
                if log.is_offline:
                    # It was never opened: whoever else has a replica shall lead.
                    partition.went_offline()
            try:
                self._take_role(partition, topic.partitions[index], settings[MIN_INSYNC_REPLICAS])
            except OSError as error:
                # One partition's files fail: it is offline, and the others go on.
                partition.log.mark_offline(error)
                partition.went_offline()

    def _take_role(self, partition: Partition, state: PartitionImage, min_isr: int) -> None:
        log = partition.log
        if state.leader != self._node.node_id or (partition.leader is None and log.is_offline):
            self._follow(partition, state)
            return
        # flush.messages=1 means the same: whoever sets it wants no record acknowledged before it is on disk.
        sync_before_ack = self._node.settings[MILLSTREAM_ACKS_FSYNC] or log.config.flush_messages == 1
        leading = partition.leader
        if leading is not None and leading.epoch == state.leader_epoch:
            partition.min_isr_changed(min_isr)
            partition.isr_committed(state.isr, state.partition_epoch, state.replicas)
            partition.sync_before_ack_changed(sync_before_ack=sync_before_ack)
            if log.is_offline:
                # There was nobody to take over when it failed, and there may be now.
                self._went_offline(partition)
            return
        self._node.replica_fetchers.unfollow(partition)
        partition.lead(
            PartitionLeader(
                node_id=self._node.node_id,
                epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                replicas=state.replicas,
                isr=state.isr,
                min_isr=min_isr,
                own_end=log.recovery_point if sync_before_ack else log.end_offset,
                high_watermark=log.high_watermark,
                epoch_start_offset=log.end_offset,
                now_ms=self._node.ports.clock.monotonic_ms(),
            ),
            self._node.durability,
            sync_before_ack=sync_before_ack,
        )
        if partition.topic in self.role_listeners:
            self.role_listeners[partition.topic].elected(partition)

    def _follow(self, partition: Partition, state: PartitionImage) -> None:
        if state.leader in (NO_LEADER, self._node.node_id) or partition.log.is_offline:
            if partition.leader is not None or partition.follower is not None:
                self._resign(partition)
            return
        following = partition.follower
        if following is not None and (following.leader_id, following.epoch) == (state.leader, state.leader_epoch):
            return
        if partition.leader is not None:
            self._resign(partition)
        partition.follow(PartitionFollower(state.leader, state.leader_epoch))
        self._node.replica_fetchers.follow(partition)

    def _resign(self, partition: Partition) -> None:
        """The coordinator goes first: answers that wait for the partition must not take its release for a commit."""
        if partition.leader is not None and partition.topic in self.role_listeners:
            self.role_listeners[partition.topic].resigned(partition)
        self._node.replica_fetchers.unfollow(partition)
        partition.resign()

    def _move_away(self, hosted: HostedTopic, index: int) -> None:
        """The partition has other replicas now, and this one is none of them."""
        partition = hosted.partitions.pop(index)
        self._resign(partition)
        self._node.deletions.delete_log(partition.log)
        if not hosted.partitions:
            self.by_id.pop(hosted.id, None)
            if self.by_name.get(hosted.name) is hosted:
                del self.by_name[hosted.name]

    def _open_log(self, topic: TopicImage, index: int, state: PartitionImage, image: MetadataImage) -> Log:
        directory = self._directory_for(topic.name, index, state)
        config = log_config(self._node.topic_settings(image, topic.name))
        folder = f"{directory.path}/{topic.name}-{index}"
        if directory.failure is not None:
            return Log.unopened(directory.disk, folder, config, topic.id, directory.failure)
        try:
            log = directory.open_or_create(topic.name, index, topic.id, config)
        except OSError as error:
            _log.error("a partition could not be made", topic=topic.name, partition=index, error=str(error))
            if self.directory_failed(directory, error):
                # One that was never in there has a place in another.
                return self._open_log(topic, index, state, image)
            if not self._node.is_ready:
                raise  # a start with half of the data would look like a loss of the other half
            return Log.unopened(directory.disk, folder, config, topic.id, error)
        if state.directories and state.directory_of(self._node.node_id) != directory.id:
            self._reports.add(topic.id, index, directory.id)
        return log

    def _directory_for(self, topic: str, index: int, state: PartitionImage) -> LogDirectory:
        """Where the metadata says, where its folder is already, or else where the fewest partitions are."""
        wanted = state.directory_of(self._node.node_id) if state.directories else None
        directories = self._node.log_directories
        for directory in directories:
            if directory.was_opened and directory.id == wanted:
                return directory
        for directory in directories:
            # What a failed one holds under the name of a new partition was of a deleted topic.
            if (topic, index) in directory.found and (self._is_loading or directory.failure is None):
                return directory
        if self._is_loading:
            for directory in directories:
                if not directory.was_opened:
                    # An old partition that is nowhere else is in there. An empty log in its place would look like the
                    # loss of all its records.
                    return directory
        well = [directory for directory in directories if directory.failure is None]
        return min(well or directories, key=lambda directory: len(directory.logs))

    # --- files that fail

    def _went_offline(self, partition: Partition) -> None:
        """The files failed: let one of the other replicas in sync lead, and none wait for this one. If there is no
        other, readers are still served from here, and the next start recovers what can be."""
        state = self._node.image.topics.partition(partition.topic_id, partition.index)
        if state is not None and state.directories and any(member != self._node.node_id for member in state.isr):
            self._reports.add(partition.topic_id, partition.index, DIRECTORY_LOST)
        log = partition.log
        if log.failure is not None and not log.deleted:
            for directory in self._node.log_directories:
                if directory.logs.get((partition.topic, partition.index)) is log:
                    self.directory_failed(directory, log.failure)

    def directory_failed(self, directory: LogDirectory, error: OSError) -> bool:
        """Whether this takes the whole directory offline, for the first time."""
        if directory.failure is not None or error.errno in LIMITS or not self._can_do_without(directory):
            return False
        _log.error("a log directory failed and is offline", directory=directory.path, error=str(error))
        directory.fail(error)
        # Nothing is written from here on. Those who wait hear of it in a turn of their own: this may be the call of one
        # of them, in the middle of an append.
        self._node.loop.call_soon(self._leave, directory)
        self._node.membership.directory_failed()
        return True

    def _can_do_without(self, directory: LogDirectory) -> bool:
        node = self._node
        if directory.path == node.storage.layout.metadata_log_dir:
            return False
        return any(other.failure is None for other in node.log_directories if other is not directory)

    def _leave(self, directory: LogDirectory) -> None:
        """Follow nobody with what is in the directory. What is led there is led until the controller says otherwise."""
        for (topic, index), log in list(directory.logs.items()):
            partition = self.get(topic, index)
            if partition is not None and partition.log is log:
                if partition.follower is not None:
                    self._resign(partition)
                partition.went_offline()

    def _delete(self, topic: TopicImage) -> None:
        hosted = self.by_id.pop(topic.id, None)
        if hosted is None:
            return
        if self.by_name.get(topic.name) is hosted:
            del self.by_name[topic.name]
        for partition in hosted.partitions.values():
            self._resign(partition)
            self._node.deletions.delete_log(partition.log)
