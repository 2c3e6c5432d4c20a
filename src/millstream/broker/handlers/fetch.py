"""Fetch: send what is readable, or wait for it on one condition with a deadline (a long poll).

Followers replicate with it too (reading.py). One that has something to add to its session, because this broker has
just become the leader of more, does not wait for its poll to end: the next Fetch of a session answers the one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.closest_replica import selects_by_rack
from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.fetch_sessions import TOPIC_IDS_SINCE
from millstream.broker.follower_feed import FollowerFeed
from millstream.broker.leader_hints import HINTED, addresses_of, leader_hint
from millstream.broker.quorum_serving import fetch_metadata
from millstream.broker.reading import FetchLimits, Reading, read_wanted
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from millstream.protocol.uuid import ZERO_UUID
from millstream.security.operations import Operation, ResourceType
from millstream.settings import FETCH_MAX_BYTES, REPLICA_LAG_TIME_MAX_MS

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from millstream.broker.fetch_sessions import Plan
    from millstream.broker.partition import Partition

HINTS_SINCE = 16


@handles(FetchRequest, versions="4-18")
def fetch(request: FetchRequest, ctx: Context) -> FetchResponse | Deferred:
    broker = ctx.broker
    replica_id = request.replica_state.replica_id if ctx.version >= 15 else request.replica_id
    if replica_id >= 0 and not ctx.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster"):
        return FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, responses=[])
    if ctx.from_controller_listener:
        return fetch_metadata(request, ctx)
    plan = broker.fetch_sessions.plan(request, ctx.version, broker.ports.clock.monotonic_ms())
    if plan.error is not ErrorCode.NONE:
        return FetchResponse(error_code=plan.error, session_id=plan.session_id, responses=[])
    if plan.session is not None and plan.session.poll is not None:
        plan.session.poll.answer_now()
    from_follower = replica_id >= 0
    limits = FetchLimits(
        min(request.max_bytes, broker.settings[FETCH_MAX_BYTES]),
        replica_id,
        request.isolation_level,
        from_follower,
        request.replica_state.replica_epoch if from_follower and ctx.version >= 15 else -1,
        request.rack_id,
    )
    feed = _feed(plan, ctx) if from_follower else None
    wanted = plan.wanted if feed is None else feed.to_read(request, broker.ports.clock.monotonic_ms())
    reading = read_wanted(wanted, limits, ctx)
    has_enough = reading.must_answer or reading.total_bytes >= request.min_bytes
    if has_enough or request.max_wait_ms <= 0 or not (plan.wanted or feed):
        return _answer(plan, reading, ctx)
    # The first answer of a session has to name every partition: Apache Kafka's followers begin anew otherwise.
    if feed is not None and plan.incremental:
        feed.looked_at(reading.answers)
        return _FollowerPoll(request, plan, limits, feed, ctx).deferred
    return _LongPoll(request, plan, limits, reading, ctx).deferred


def _feed(plan: Plan, ctx: Context) -> FollowerFeed | None:
    """What keeps an eye on the partitions of a follower's session; others are simply read."""
    session = plan.session
    if session is None or not session.by_topic_id:
        return None
    if session.feed is None:
        session.feed = FollowerFeed(
            session,
            ctx.broker.partitions,
            lag_max_ms=ctx.broker.settings[REPLICA_LAG_TIME_MAX_MS],
            marks=selects_by_rack(ctx.broker),
        )
    return session.feed


def _answer(plan: Plan, reading: Reading, ctx: Context) -> FetchResponse:
    ctx.broker.metrics.fetched_bytes += reading.total_bytes
    topics: dict[object, FetchableTopicResponse] = {}
    leaders: list[int] = []
    session = plan.session if plan.incremental else None
    feed = None if plan.session is None else plan.session.feed
    by_topic_id = ctx.version >= TOPIC_IDS_SINCE
    for item, answer in reading.answers:
        if plan.session is not None:
            news = plan.session.is_news((item.topic, item.partition), answer)
            if feed is not None:
                feed.told(item, answer)
            if session is not None and not news:
                continue
        topic = topics.get(item.topic)
        if topic is None:
            topic = topics[item.topic] = FetchableTopicResponse(
                topic="" if by_topic_id else str(item.topic),
                topic_id=item.topic if by_topic_id else ZERO_UUID,  # type: ignore[arg-type]  # an id from v13 on
                partitions=[],
            )
        topic.partitions.append(answer)
        if answer.error_code and answer.error_code in HINTED and ctx.version >= HINTS_SINCE:
            hint = leader_hint(ctx.broker, item.topic, item.partition)
            if hint is not None:
                answer.current_leader = LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
                leaders.append(hint.leader_id)
    response = FetchResponse(session_id=plan.session_id, responses=list(topics.values()))
    if leaders:
        response.node_endpoints = [
            NodeEndpoint(node_id=at.node_id, host=at.host, port=at.port, rack=at.rack)
            for at in addresses_of(ctx, leaders)
        ]
    return response


class _LongPoll:
    """A Fetch that waits until `min_bytes` can be read, something goes wrong, or its time is up."""

    __slots__ = (
        "_ctx", "_limits", "_partitions", "_plan", "_request", "_roles", "_seen_bytes", "_timer", "_wanted_bytes",
        "deferred",
    )  # fmt: skip

    def __init__(self, request: FetchRequest, plan: Plan, limits: FetchLimits, reading: Reading, ctx: Context) -> None:
        self._request = request
        self._plan = plan
        self._limits = limits
        self._ctx = ctx
        self._partitions: list[Partition] = reading.partitions
        self._roles = self._role_changes()
        self._note(reading)
        self.deferred = Deferred(on_abandon=self._stop)
        self._timer: TimerHandle = ctx.broker.loop.call_later(request.max_wait_ms / 1000, self.answer_now)
        if plan.session is not None:
            plan.session.poll = self
        for partition in self._partitions:
            if limits.from_follower:
                partition.subscribe_to_end(self)
            else:
                partition.subscribe(self)

    def _note(self, reading: Reading) -> None:
        self._wanted_bytes = self._request.min_bytes - reading.total_bytes
        self._seen_bytes = self._appended_bytes()
        for partition in self._partitions:
            if partition.log.last_stable_offset != partition.log.end_offset:
                # Some of what was counted cannot be read yet; it will be when a mark moves, without another append.
                self._wanted_bytes = 0

    def _appended_bytes(self) -> int:
        total = 0
        for partition in self._partitions:
            total += partition.appended_bytes
        return total

    def _role_changes(self) -> int:
        total = 0
        for partition in self._partitions:
            total += partition.role_changes
        return total

    def more_to_read(self) -> None:
        """A partition has news. Reading is dear, so count first whether enough may have come."""
        if self.deferred.done:
            return  # the first poll of a follower's session is woken by its feed too
        same_roles = self._role_changes() == self._roles
        if same_roles and self._appended_bytes() - self._seen_bytes < self._wanted_bytes:
            return
        reading = self._read()
        if reading.must_answer or reading.total_bytes >= self._request.min_bytes:
            self._stop()
            self.deferred.finish(_answer(self._plan, reading, self._ctx))
        else:
            self._note(reading)

    def news_of(self, partition: Partition) -> None:
        """Which partition it is makes no difference: all of them are read."""

    def _read(self) -> Reading:
        return read_wanted(self._plan.wanted, self._limits, self._ctx, again=True)

    def answer_now(self) -> None:
        """The time is up, or the client has asked for something else in the same session."""
        self._stop()
        self.deferred.finish(_answer(self._plan, self._read(), self._ctx))

    def _stop(self) -> None:
        session = self._plan.session
        if session is not None and session.poll is self:
            session.poll = None
        self._timer.cancel()
        for partition in self._partitions:
            partition.unsubscribe(self)
            partition.unsubscribe_from_end(self)


class _FollowerPoll:
    """The same for a follower: reads what its feed says, again and again until there is something to send."""

    __slots__ = ("_ctx", "_feed", "_limits", "_plan", "_request", "_session", "_timer", "deferred")

    def __init__(
        self, request: FetchRequest, plan: Plan, limits: FetchLimits, feed: FollowerFeed, ctx: Context
    ) -> None:
        assert plan.session is not None
        self._request = request
        self._plan = plan
        self._limits = limits
        self._feed = feed
        self._ctx = ctx
        self._session = plan.session
        self._session.poll = self
        self.deferred = Deferred(on_abandon=self._stop)
        self._timer: TimerHandle = ctx.broker.loop.call_later(request.max_wait_ms / 1000, self._time_is_up)

    def more_to_read(self) -> None:
        reading = read_wanted(self._feed.unsettled(), self._limits, self._ctx, again=True)
        if reading.must_answer or reading.total_bytes >= self._request.min_bytes or self._feed.has_newer_mark:
            self._answer(reading)
        else:
            self._feed.looked_at(reading.answers)

    def answer_now(self) -> None:
        """The follower has asked for something else in the same session."""
        self._answer(Reading([], [], 0, must_answer=True))

    def _time_is_up(self) -> None:
        self._answer(read_wanted(self._feed.unsettled(), self._limits, self._ctx, again=True))

    def _answer(self, reading: Reading) -> None:
        self._stop()
        self.deferred.finish(_answer(self._plan, reading, self._ctx))

    def _stop(self) -> None:
        self._timer.cancel()
        if self._session.poll is self:
            self._session.poll = None
