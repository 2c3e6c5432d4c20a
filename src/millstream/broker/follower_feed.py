"""What one follower's fetch session has to be read for: usually a few of its many partitions.

A follower follows hundreds of partitions, most of them idle. One that the follower has to its end, and whose high
watermark it was told to be that end, is *settled*: nothing about it can be news before something is appended or
deleted. So the feed watches the ends of all logs of the session, and a fetch reads only what is not settled. Now and
then everything is looked at: retention moves log starts, and the leader wants to know when a follower was seen last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.broker.fetch_sessions import Key, Session, Wanted
    from millstream.broker.partition import Partition
    from millstream.broker.partitions import Partitions
    from millstream.protocol.messages.fetch import FetchRequest, PartitionData

EVERYTHING_AFTER_MS = 1_000


class FollowerFeed:
    """Belongs to a session, by topic ids, of a follower."""

    __slots__ = ("_everything_after_ms", "_hosted", "_looked_ms", "_marks", "_session", "_unsettled", "_watched")

    def __init__(self, session: Session, hosted: Partitions, *, lag_max_ms: int, marks: bool) -> None:
        self._session = session
        # Often enough for who measures how long a follower has lagged.
        self._everything_after_ms = min(EVERYTHING_AFTER_MS, lag_max_ms // 4)
        self._hosted = hosted
        # Whether the follower shall hear of high watermarks at once.
        self._marks = marks
        self._unsettled: dict[Key, None] = {}
        self._watched: dict[Key, Partition] = {}
        self._looked_ms = -self._everything_after_ms

    # --- what to read

    def to_read(self, request: FetchRequest, now_ms: int) -> list[Wanted]:
        """For a request that was just added to the session."""
        for gone in request.forgotten_topics_data:
            for index in gone.partitions:
                self._unwatch((gone.topic_id, index))
        if now_ms - self._looked_ms >= self._everything_after_ms:
            self._looked_ms = now_ms
            return self._everything()
        for topic in request.topics:
            for part in topic.partitions:
                key = (topic.topic_id, part.partition)
                self._watch(key)
                self._unsettled[key] = None
        return self.unsettled()

    def _everything(self) -> list[Wanted]:
        partitions = self._session.partitions
        for key in partitions:
            self._watch(key)
        self._unsettled |= dict.fromkeys(partitions)
        return [known.wanted for known in partitions.values()]

    def unsettled(self) -> list[Wanted]:
        partitions = self._session.partitions
        return [partitions[key].wanted for key in self._unsettled if key in partitions]

    def told(self, wanted: Wanted, answer: PartitionData) -> None:
        """The follower is sent this; it may have everything by that."""
        if self._has_everything(wanted, answer):
            self._unsettled.pop((wanted.topic, wanted.partition), None)

    def looked_at(self, answers: Iterable[tuple[Wanted, PartitionData]]) -> None:
        """This was read and is not sent. What the follower knows of already is settled all the same, or whoever adds
        to a session again and again would have all of it read again and again."""
        for wanted, answer in answers:
            key = (wanted.topic, wanted.partition)
            mark = answer.high_watermark
            # Where the follower's log is empty, its own high watermark cannot be lower.
            knows_mark = mark in (wanted.log_start_offset, self._session.told_mark(key))
            knows_start = self._session.told_start(key) == answer.log_start_offset
            if knows_mark and knows_start and self._has_everything(wanted, answer):
                self._unsettled.pop(key, None)

    def _has_everything(self, wanted: Wanted, answer: PartitionData) -> bool:
        partition = self._watched.get((wanted.topic, wanted.partition))
        return (
            partition is not None
            and answer.error_code == ErrorCode.NONE
            and not answer.records
            and wanted.fetch_offset == answer.high_watermark == partition.log.end_offset
        )

    @property
    def has_newer_mark(self) -> bool:
        """Whether a high watermark is above what the follower was told, and it shall know at once."""
        if not self._marks:
            return False
        return any(
            self._watched[key].log.high_watermark > self._session.told_mark(key)
            for key in self._unsettled
            if key in self._watched
        )

    # --- hearing of it

    def _watch(self, key: Key) -> None:
        topic_id, index = key
        topic = self._hosted.by_id.get(topic_id)  # type: ignore[arg-type]  # sessions of followers go by id
        partition = None if topic is None else topic.partitions.get(index)
        if self._watched.get(key) is not partition:
            self._unwatch(key)
            if partition is not None:
                self._watched[key] = partition
                partition.subscribe_to_end(self)
                if self._marks:
                    partition.subscribe(self)

    def _unwatch(self, key: Key) -> None:
        partition = self._watched.pop(key, None)
        if partition is not None:
            self._leave(partition)
        self._unsettled.pop(key, None)

    def news_of(self, partition: Partition) -> None:
        self._unsettled[partition.topic_id, partition.index] = None

    def more_to_read(self) -> None:
        if self._session.poll is not None:
            self._session.poll.more_to_read()

    def close(self) -> None:
        for partition in self._watched.values():
            self._leave(partition)
        self._watched.clear()

    def _leave(self, partition: Partition) -> None:
        partition.unsubscribe(self)
        partition.unsubscribe_from_end(self)
