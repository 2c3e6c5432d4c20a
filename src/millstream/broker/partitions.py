"""All partitions that this broker hosts, kept in step with the metadata image.

`apply` is called once for each new image. It opens and creates logs, makes leaders, hands changed settings to logs, and
renames the logs of deleted topics out of the way (they are removed in the background).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from millstream.broker.log_settings import log_config
from millstream.broker.partition import Partition
from millstream.log.log import Log
from millstream.metadata.decide_directories import decide_assign_directories
from millstream.metadata.image import BROKER_CONFIG, TOPIC_CONFIG
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
        self._unreported: dict[tuple[Uuid, int], Uuid] = {}

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

    # --- following the image

    def apply(self, image: MetadataImage, changes: Changes) -> None:
        """Follow one change of the metadata."""
        for deleted in changes.topics_deleted:
            self._delete(deleted)
        for created in changes.topics_created:
            self._host(created, created.partitions.keys(), image)
        for name, indexes in changes.partitions_changed.items():
            topic = image.topics.by_name.get(name)
            if topic is not None:
                self._host(topic, indexes, image)
        self._follow_settings(image, changes)

    def load(self, image: MetadataImage) -> None:
        """Host everything that a first image says lives here."""
        for topic in image.topics.by_name.values():
            self._host(topic, topic.partitions.keys(), image)

    def _follow_settings(self, image: MetadataImage, changes: Changes) -> None:
        changed: dict[str, None] = {}
        for resource_type, name in changes.configs:
            if resource_type == TOPIC_CONFIG:
                changed[name] = None
            elif resource_type == BROKER_CONFIG and name in ("", str(self._node.node_id)):
                self._node.follow_broker_settings(image)
                changed |= dict.fromkeys(self.by_name)
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
        mine = [index for index in indexes if node_id in topic.partitions[index].replicas]
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
                partition = hosted.partitions[index] = Partition(topic.name, index, topic.id, log, self._node.wakeups)
            try:
                self._take_role(partition, topic.partitions[index], settings[MIN_INSYNC_REPLICAS])
            except OSError as error:
                # One partition's files fail: it is offline, and the others go on.
                partition.log.mark_offline(error)
                partition.went_offline()

    def _take_role(self, partition: Partition, state: PartitionImage, min_isr: int) -> None:
        leading = partition.leader
        log = partition.log
        # flush.messages=1 means the same: whoever sets it wants no record acknowledged before it is on disk.
        sync_before_ack = self._node.settings[MILLSTREAM_ACKS_FSYNC] or log.config.flush_messages == 1
        if state.leader != self._node.node_id or (leading is None and log.is_offline):
            if leading is not None:
                self._resign(partition)
            return
        if leading is not None and leading.epoch == state.leader_epoch:
            leading.min_isr = min_isr
            leading.replicas = state.replicas
            partition.isr_changed(state.isr)
            partition.sync_before_ack_changed(sync_before_ack=sync_before_ack)
            return
        partition.lead(
            PartitionLeader(
                node_id=self._node.node_id,
                epoch=state.leader_epoch,
                replicas=state.replicas,
                isr=state.isr,
                min_isr=min_isr,
                own_end=log.recovery_point if sync_before_ack else log.end_offset,
                high_watermark=log.high_watermark,
            ),
            self._node.durability,
            sync_before_ack=sync_before_ack,
        )
        if partition.topic in self.role_listeners:
            self.role_listeners[partition.topic].elected(partition)

    def _resign(self, partition: Partition) -> None:
        partition.resign()
        if partition.topic in self.role_listeners:
            self.role_listeners[partition.topic].resigned(partition)

    def _open_log(self, topic: TopicImage, index: int, state: PartitionImage, image: MetadataImage) -> Log:
        directory = self._directory_for(topic.name, index, state)
        if state.directories and state.directory_of(self._node.node_id) != directory.id:
            self._report_directory(topic.id, index, directory.id)
        config = log_config(self._node.topic_settings(image, topic.name))
        try:
            return directory.open_or_create(topic.name, index, topic.id, config)
        except OSError as error:
            if not self._node.is_ready:
                raise  # a start with half of the data would look like a loss of the other half
            _log.error("a partition could not be made", topic=topic.name, partition=index, error=str(error))
            folder = f"{directory.path}/{topic.name}-{index}"
            return Log.unopened(directory.disk, folder, config, topic.id, error)

    def _directory_for(self, topic: str, index: int, state: PartitionImage) -> LogDirectory:
        """Where the metadata says, where its folder is already, or else where the fewest partitions are."""
        wanted = state.directory_of(self._node.node_id) if state.directories else None
        directories = self._node.log_directories
        for directory in directories:
            if directory.id == wanted:
                return directory
        for directory in directories:
            if (topic, index) in directory.found:
                return directory
        return min(directories, key=lambda directory: len(directory.logs))

    def _report_directory(self, topic_id: Uuid, index: int, directory_id: Uuid) -> None:
        """Tell the controller, soon, and everything of this turn of the loop at once."""
        if not self._unreported:
            self._node.loop.call_soon(self._send_report)
        self._unreported[topic_id, index] = directory_id

    def _send_report(self) -> None:
        places, self._unreported = self._unreported, {}
        self._node.background(
            self._node.controller.submit(lambda image, _: decide_assign_directories(image, self._node.node_id, places))
        )

    def _delete(self, topic: TopicImage) -> None:
        hosted = self.by_id.pop(topic.id, None)
        if hosted is None:
            return
        if self.by_name.get(topic.name) is hosted:
            del self.by_name[topic.name]
        for partition in hosted.partitions.values():
            self._resign(partition)
            self._node.deletions.delete_log(partition.log)
