"""Where committed offsets are kept, and those that a transaction has still to decide.

Of every (group, topic, partition) the newest value is kept as the record that was written: it has all there is to know
and no more, and nothing has to be converted when a million of them are replayed.

Offsets committed in a transaction are *pending* under their producer id until its marker is written. Which of two
commits counts is settled by their places in the log: a pending offset that was overtaken by a later commit is not
brought back by its marker, though the partition stays unstable (KIP-447) until then; one that was overtaken by a
tombstone is gone at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.groups.offsets.tombstones import tombstone
from millstream.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from millstream.protocol.messages.groups.offset_commit import OffsetCommitKey, OffsetCommitValue
    from millstream.protocol.uuid import Uuid
    from millstream.replicated import Record

    OffsetsOfGroup = dict[str, dict[int, OffsetCommitValue]]

Place = tuple[str, str, int]
_NOTHING: OffsetsOfGroup = {}


class _Pending(NamedTuple):
    """An offset that waits for its marker; `value` is None once a later record has overtaken it."""

    value: OffsetCommitValue | None
    offset: int


class CommittedOffsets:
    """The offsets of all groups of a shard. Only `apply` and `end_transaction` change it."""

    __slots__ = ("_by_group", "_ids", "_open", "_pending", "count")

    def __init__(self) -> None:
        self._by_group: dict[str, OffsetsOfGroup] = {}
        self._pending: dict[int, dict[Place, _Pending]] = {}
        # The same, by group: which producers have a transaction open on a partition.
        self._open: dict[str, dict[tuple[str, int], dict[int, None]]] = {}
        self._ids: dict[Uuid, Uuid] = {}
        self.count = 0

    # --- what is asked

    def knows(self, group_id: str) -> bool:
        """Whether the group has offsets, committed or pending."""
        return group_id in self._by_group or group_id in self._open

    def group_ids(self) -> Iterator[str]:
        """Every group that has offsets, committed or pending."""
        yield from self._by_group
        for group_id in self._open:
            if group_id not in self._by_group:
                yield group_id

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, OffsetCommitValue]]:
        """Topic -> partition -> offset."""
        return self._by_group.get(group_id, _NOTHING)

    def get(self, group_id: str, topic: str, partition: int) -> OffsetCommitValue | None:
        topics = self._by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has committed an offset here."""
        opened = self._open.get(group_id)
        return opened is not None and (topic, partition) in opened

    def has_open_transactions(self, group_id: str) -> bool:
        return group_id in self._open

    def open_partitions(self, group_id: str) -> Iterable[tuple[str, int]]:
        """The partitions on which transactions are open."""
        return self._open.get(group_id, {})

    def of_topic(self, topic: str, topic_id: Uuid) -> Iterator[tuple[str, int]]:
        """Groups and partitions of the offsets of a topic; those committed for another topic of that name are not."""
        for group_id, topics in self._by_group.items():
            for partition, value in topics.get(topic, {}).items():
                if value.topic_id in (topic_id, ZERO_UUID):
                    yield group_id, partition
        for group_id, opened in self._open.items():
            for name, partition in opened:
                if name == topic and self.get(group_id, topic, partition) is None:
                    yield group_id, partition

    def tombstones(self, group_id: str) -> list[Record]:
        """What removes all offsets of a group from the log, pending ones too."""
        places = {
            (topic, partition): None
            for topic, partitions in self.of_group(group_id).items()
            for partition in partitions
        }
        places.update(dict.fromkeys(self.open_partitions(group_id)))
        return [tombstone(group_id, topic, partition) for topic, partition in places]

    # --- what changes it

    def apply(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, *, transaction: tuple[int, int] | None, offset: int
    ) -> None:
        """One record of the log, at `offset`."""
        group_id, topic, partition = key.group, key.topic, key.partition
        if transaction is not None and value is not None:
            place = (group_id, topic, partition)
            producer_id = transaction[0]
            self._pending.setdefault(producer_id, {})[place] = _Pending(value, offset)
            self._open.setdefault(group_id, {}).setdefault((topic, partition), {})[producer_id] = None
            return
        if value is None:
            self._remove(group_id, topic, partition)
        else:
            self._put(group_id, topic, partition, value)
        if group_id in self._open:
            self._overtake((group_id, topic, partition), offset, forget=value is None)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The marker of a producer's transaction was written."""
        for place, pending in self._pending.pop(producer_id, {}).items():
            self._close(place, producer_id)
            if committed and pending.value is not None:
                self._put(*place, pending.value)
                self._overtake(place, pending.offset, forget=False)

    def _put(self, group_id: str, topic: str, partition: int, value: OffsetCommitValue) -> None:
        topics = self._by_group.get(group_id)
        if topics is None:
            topics = self._by_group[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        if partition not in partitions:
            self.count += 1
        # A million values read from the log would each bring their own copy of the topic's id.
        value.topic_id = self._ids.setdefault(value.topic_id, value.topic_id)
        partitions[partition] = value

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None or partitions.pop(partition, None) is None:
            return
        self.count -= 1
        if not partitions:
            del topics[topic]
            if not topics:
                del self._by_group[group_id]

    def _overtake(self, place: Place, offset: int, *, forget: bool) -> None:
        """What is pending here and older than `offset` does not count any more."""
        group_id, topic, partition = place
        for producer_id in list(self._open.get(group_id, {}).get((topic, partition), ())):
            pending = self._pending[producer_id]
            if pending[place].offset > offset:
                continue
            if forget:
                del pending[place]
                self._close(place, producer_id)
            else:
                pending[place] = _Pending(None, pending[place].offset)

    def _close(self, place: Place, producer_id: int) -> None:
        """The producer has no transaction open here any more."""
        group_id, topic, partition = place
        opened = self._open[group_id]
        producers = opened[topic, partition]
        del producers[producer_id]
        if not producers:
            del opened[topic, partition]
            if not opened:
                del self._open[group_id]
