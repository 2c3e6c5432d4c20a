"""The group coordinator of this broker: a GroupMachine for each partition of `__consumer_offsets` that is led here."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.broker.coordinator import Coordinator
from millstream.groups.machine import GroupMachine
from millstream.groups.offsets.delete import decide_topics_deleted
from millstream.metadata.names import OFFSETS_TOPIC
from millstream.runtime.shard import Shard, Stage
from millstream.settings import OFFSETS_COMMIT_TIMEOUT_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.broker.node import Node
    from millstream.metadata.delta import Changes
    from millstream.metadata.image import MetadataImage, TopicImage
    from millstream.replicated import Decision


class Lag(NamedTuple):
    """How far a group is behind the end of a partition."""

    group_id: str
    topic: str
    partition: int
    records: int


class GroupCoordinator(Coordinator[GroupMachine]):
    """See the module's docstring. Follows the metadata for topics that are deleted."""

    def __init__(self, node: Node) -> None:
        super().__init__(
            node,
            OFFSETS_TOPIC,
            "groups",
            lambda _: GroupMachine(lambda: node.settings, lambda: node.image, node.ports.random.uuid),
            _no_effect,
            OFFSETS_COMMIT_TIMEOUT_MS,
        )

    def metadata_changed(self, _image: MetadataImage, changes: Changes) -> None:
        """Offsets of topics that are gone are forgotten; a shard that is still loading keeps them until they expire."""
        deleted = changes.topics_deleted
        if not deleted:
            return
        for shard in self.active_shards():
            if shard.stage is Stage.ACTIVE:
                shard.run(partial(_topics_deleted, deleted))

    # --- for metrics

    def _machines(self) -> Iterator[GroupMachine]:
        for shard in self.active_shards():
            if shard.stage is Stage.ACTIVE:
                yield shard.machine

    @property
    def group_count(self) -> int:
        return sum(sum(1 for _ in machine.all_groups()) for machine in self._machines())

    @property
    def offset_count(self) -> int:
        return sum(machine.offsets.count for machine in self._machines())

    def lags(self) -> Iterator[Lag]:
        """The lag of every committed offset whose partition lives here."""
        for machine in self._machines():
            for group_id in machine.offsets.group_ids():
                for topic, partitions in machine.offsets.of_group(group_id).items():
                    for index, value in partitions.items():
                        partition = self._node.partitions.get(topic, index)
                        if partition is not None:
                            behind = max(0, partition.log.high_watermark - value.offset)
                            yield Lag(group_id, topic, index, behind)


def _topics_deleted(topics: tuple[TopicImage, ...], machine: GroupMachine, _now_ms: int) -> Decision[None]:
    return decide_topics_deleted(machine, (*machine.deleted_topics, *topics))


def _no_effect(_shard: Shard[GroupMachine], effect: Any) -> None:
    raise AssertionError(f"the group coordinator has no effects, and {effect!r} is one")
