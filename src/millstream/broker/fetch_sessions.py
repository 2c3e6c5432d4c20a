"""Fetch sessions (KIP-227): the client says once what it wants, then only what changed; so does the answer.

PURE: no clock of its own, no I/O. A session belongs to one consumer or follower; its partitions stand in fetch order,
and one that was just served goes to the end, so that none starves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.broker.follower_feed import FollowerFeed
    from millstream.protocol.messages.fetch import FetchRequest, PartitionData
    from millstream.protocol.uuid import Uuid
    from millstream.runtime.ports import Random

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_LAST_EPOCH = 2**31 - 1
TOPIC_IDS_SINCE = 13


class Wanted(NamedTuple):
    """What a client wants of one partition; `topic` is a name or, from version 13 on, an id."""

    topic: str | Uuid
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int


Key = tuple["str | Uuid", int]


@dataclass(slots=True)
class _Remembered:
    """One partition of a session: what is wanted, and what the client was told last."""

    wanted: Wanted
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1


class Poll(Protocol):
    """A Fetch that waits."""

    def answer_now(self) -> None: ...
    def more_to_read(self) -> None: ...


@dataclass(slots=True)
class Session:
    """What one client fetches."""

    id: int
    privileged: bool
    by_topic_id: bool
    created_ms: int
    used_ms: int
    epoch: int = 1
    partitions: dict[Key, _Remembered] = field(default_factory=dict)
    # The Fetch of this session that waits for something to send.
    poll: Poll | None = None
    feed: FollowerFeed | None = None

    def close(self) -> None:
        if self.feed is not None:
            self.feed.close()

    def update(self, wanted: Iterable[Wanted], forgotten: Iterable[Key]) -> None:
        for item in wanted:
            known = self.partitions.get((item.topic, item.partition))
            if known is None:
                self.partitions[item.topic, item.partition] = _Remembered(item)
            else:
                known.wanted = item
        for key in forgotten:
            self.partitions.pop(key, None)

    def told_mark(self, key: Key) -> int:
        """The high watermark that the client was told last."""
        known = self.partitions.get(key)
        return -1 if known is None else known.high_watermark

    def told_start(self, key: Key) -> int:
        """Where the log began when the client was last told."""
        known = self.partitions.get(key)
        return -1 if known is None else known.log_start_offset

    def is_news(self, key: Key, answer: PartitionData) -> bool:
        """Whether an incremental answer must carry this partition; remembers what it then says."""
        known = self.partitions.get(key)
        if known is None:
            return True
        has_records = bool(answer.records)
        news = (
            has_records
            or known.high_watermark != answer.high_watermark
            or known.last_stable_offset != answer.last_stable_offset
            or known.log_start_offset != answer.log_start_offset
            or answer.diverging_epoch.epoch != -1
            or answer.preferred_read_replica != -1
        )
        known.high_watermark = answer.high_watermark
        known.last_stable_offset = answer.last_stable_offset
        known.log_start_offset = answer.log_start_offset
        if answer.error_code != ErrorCode.NONE:
            # Repeat until the client has reacted, and say it when the error has gone.
            known.high_watermark = -1
            news = True
        if has_records:
            del self.partitions[key]
            self.partitions[key] = known
        return news


class Plan(NamedTuple):
    """What one Fetch request shall be answered with."""

    wanted: list[Wanted]
    """Everything that the client wants, except where the session's feed says what to read."""
    session: Session | None = None
    incremental: bool = False
    error: ErrorCode = ErrorCode.NONE

    @property
    def session_id(self) -> int:
        return 0 if self.session is None else self.session.id


class FetchSessions:
    """All sessions of this broker, at most `slots` of them; older ones give way after `evict_after_ms` of rest."""

    def __init__(self, random: Random, slots: int, evict_after_ms: int = 120_000) -> None:
        self._random = random
        self._slots = slots
        self._evict_after_ms = evict_after_ms
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: FetchRequest, version: int, now_ms: int) -> Plan:
        by_topic_id = version >= TOPIC_IDS_SINCE
        wanted = [
            Wanted(
                topic.topic_id if by_topic_id else topic.topic,
                part.partition,
                part.fetch_offset,
                part.partition_max_bytes,
                part.current_leader_epoch,
                part.last_fetched_epoch,
                part.log_start_offset,
            )
            for topic in request.topics
            for part in topic.partitions
        ]
        if version < 7 or request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id in self._sessions:
                self._end(self._sessions[request.session_id])
            if version < 7 or request.session_epoch == FINAL_EPOCH:
                return Plan(wanted)
            return Plan(wanted, self._create(request, wanted, by_topic_id=by_topic_id, now_ms=now_ms))
        session = self._sessions.get(request.session_id)
        if session is None:
            return Plan([], error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            return Plan([], session, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_topic_id != by_topic_id:
            return Plan([], session, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        forgotten = [
            (topic.topic_id if by_topic_id else topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ]
        session.update(wanted, forgotten)
        if not session.partitions:
            self._end(session)
            return Plan([])
        session.epoch = session.epoch + 1 if session.epoch < _LAST_EPOCH else 1
        self._touch(session, now_ms)
        # A feed knows better which of a thousand partitions to look at.
        all_wanted = [] if session.feed is not None else [known.wanted for known in session.partitions.values()]
        return Plan(all_wanted, session, incremental=True)

    def _create(self, request: FetchRequest, wanted: list[Wanted], *, by_topic_id: bool, now_ms: int) -> Session | None:
        privileged = max(request.replica_id, request.replica_state.replica_id) >= 0
        if not wanted or not self._has_room(now_ms, privileged=privileged):
            return None
        session_id = 1 + self._random.below(_LAST_EPOCH)
        while session_id in self._sessions:
            session_id = 1 + self._random.below(_LAST_EPOCH)
        session = Session(session_id, privileged, by_topic_id, created_ms=now_ms, used_ms=now_ms)
        session.update(wanted, ())
        self._sessions[session_id] = session
        return session

    def _has_room(self, now_ms: int, *, privileged: bool) -> bool:
        if len(self._sessions) < self._slots:
            return True
        # Least recently used first: `_touch` keeps that order.
        for session in self._sessions.values():
            stale = now_ms - session.used_ms > self._evict_after_ms
            if stale or (privileged and not session.privileged):
                self._end(session)
                return True
        return False

    def _end(self, session: Session) -> None:
        del self._sessions[session.id]
        session.close()

    def _touch(self, session: Session, now_ms: int) -> None:
        session.used_ms = now_ms
        del self._sessions[session.id]
        self._sessions[session.id] = session
