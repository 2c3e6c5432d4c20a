"""The follower's side of a fetch session (KIP-227): says once what it wants, then only what changed.

PURE. Requests may be sent before the answers to earlier ones have come: the epochs of a session count requests, and the
leader sees them in order. `generation` tells which answers belong to a session that was given up meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

if TYPE_CHECKING:
    from millstream.protocol.uuid import Uuid
    from millstream.replication.follower import Position

Key = tuple["Uuid", int]
_INITIAL_EPOCH = 0
_LAST_EPOCH = 2**31 - 1


class Asked(NamedTuple):
    """What the leader was told of one partition: all that would be worth telling again if it changed."""

    position: Position
    log_start_offset: int


class ReplicaFetchSession:
    """A session with one leader."""

    def __init__(self, partition_max_bytes: int) -> None:
        self._partition_max_bytes = partition_max_bytes
        self._id = 0
        self._epoch = _INITIAL_EPOCH
        self.generation = 0
        self.asked: dict[Key, Asked] = {}

    @property
    def is_new(self) -> bool:
        """Whether the next request has to name everything."""
        return self._epoch == _INITIAL_EPOCH

    @property
    def waits_for_id(self) -> bool:
        """The first answer tells the session's id, and nothing can be added before that."""
        return self._epoch != _INITIAL_EPOCH and self._id == 0

    def give_up(self) -> None:
        """The leader does not know the session, or we don't know what it knows: begin again."""
        self._epoch = _INITIAL_EPOCH
        self.generation += 1
        self.asked = {}

    def answered(self, session_id: int) -> None:
        """An answer came; 0 if the leader keeps no session for us."""
        self._id = session_id
        if session_id == 0:
            self.give_up()

    def fill(self, request: FetchRequest, wanted: dict[Key, Asked], forgotten: list[Key]) -> dict[Key, Asked | None]:
        """Name what is wanted, and no longer wanted, in a request; `wanted` is everything if the session is new.

        Returns what the leader had been told before of everything that is named: an answer that is still under way to
        an earlier request belongs to that.
        """
        before: dict[Key, Asked | None] = {}
        request.session_id = self._id
        request.session_epoch = self._epoch
        topics: dict[Uuid, FetchTopic] = {}
        for key, asked in wanted.items():
            known = self.asked.get(key)
            if known == asked:
                continue
            before[key] = known
            self.asked[key] = asked
            topic_id, index = key
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic_id=topic_id, partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=asked.position.leader_epoch,
                    fetch_offset=asked.position.offset,
                    last_fetched_epoch=asked.position.last_fetched_epoch,
                    log_start_offset=asked.log_start_offset,
                    partition_max_bytes=self._partition_max_bytes,
                )
            )
        gone: dict[Uuid, ForgottenTopic] = {}
        for key in forgotten:
            known = self.asked.pop(key, None)
            if known is not None:
                before[key] = known
                topic_id, index = key
                if topic_id not in gone:
                    gone[topic_id] = ForgottenTopic(topic_id=topic_id, partitions=[])
                gone[topic_id].partitions.append(index)
        request.topics = list(topics.values())
        request.forgotten_topics_data = list(gone.values())
        if self._epoch == _INITIAL_EPOCH:
            self._id = 0  # the one just named ends with this request
        self._epoch = self._epoch + 1 if self._epoch < _LAST_EPOCH else 1
        return before
