"""Fetch: send what is readable, or wait for it on one condition with a deadline (a long poll)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.fetch_sessions import TOPIC_IDS_SINCE
from millstream.broker.reading import FetchLimits, Reading, read_wanted
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse
from millstream.protocol.uuid import ZERO_UUID
from millstream.security.operations import Operation, ResourceType
from millstream.settings import FETCH_MAX_BYTES

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from millstream.broker.fetch_sessions import Plan
    from millstream.broker.partition import Partition


@handles(FetchRequest, versions="4-18")
def fetch(request: FetchRequest, ctx: Context) -> FetchResponse | Deferred:
    broker = ctx.broker
    replica_id = request.replica_state.replica_id if ctx.version >= 15 else request.replica_id
    if replica_id >= 0 and not ctx.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster"):
        return FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, responses=[])
    plan = broker.fetch_sessions.plan(request, ctx.version, broker.ports.clock.monotonic_ms())
    if plan.error is not ErrorCode.NONE:
        return FetchResponse(error_code=plan.error, session_id=plan.session_id, responses=[])
    limits = FetchLimits(
        max_bytes=min(request.max_bytes, broker.settings[FETCH_MAX_BYTES]),
        replica_id=replica_id,
        isolation_level=request.isolation_level,
    )
    reading = read_wanted(plan.wanted, limits, ctx)
    enough = (
        reading.must_answer or reading.total_bytes >= request.min_bytes or request.max_wait_ms <= 0 or not plan.wanted
    )
    if enough:
        return _answer(plan, reading, ctx)
    return _LongPoll(request, plan, limits, reading, ctx).deferred


def _answer(plan: Plan, reading: Reading, ctx: Context) -> FetchResponse:
    ctx.broker.metrics.fetched_bytes += reading.total_bytes
    topics: dict[object, FetchableTopicResponse] = {}
    session = plan.session if plan.incremental else None
    by_topic_id = ctx.version >= TOPIC_IDS_SINCE
    for item, answer in reading.answers:
        if plan.session is not None:
            news = plan.session.is_news((item.topic, item.partition), answer)
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
    return FetchResponse(session_id=plan.session_id, responses=list(topics.values()))


class _LongPoll:
    """A Fetch that waits until `min_bytes` can be read, something goes wrong, or its time is up."""

    __slots__ = (
        "_ctx", "_limits", "_partitions", "_plan", "_request", "_seen_bytes", "_timer", "_wanted_bytes", "deferred",
    )  # fmt: skip

    def __init__(self, request: FetchRequest, plan: Plan, limits: FetchLimits, reading: Reading, ctx: Context) -> None:
        self._request = request
        self._plan = plan
        self._limits = limits
        self._ctx = ctx
        self._partitions: list[Partition] = reading.partitions
        self._note(reading)
        self.deferred = Deferred(on_abandon=self._stop)
        self._timer: TimerHandle = ctx.broker.loop.call_later(request.max_wait_ms / 1000, self._finish)
        for partition in self._partitions:
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

    def more_to_read(self) -> None:
        """A partition has news. Reading is dear, so count first whether enough may have come."""
        still_led = all(partition.leader is not None for partition in self._partitions)
        if still_led and self._appended_bytes() - self._seen_bytes < self._wanted_bytes:
            return
        reading = read_wanted(self._plan.wanted, self._limits, self._ctx)
        if reading.must_answer or reading.total_bytes >= self._request.min_bytes:
            self._stop()
            self.deferred.finish(_answer(self._plan, reading, self._ctx))
        else:
            self._note(reading)

    def _finish(self) -> None:
        self._stop()
        self.deferred.finish(_answer(self._plan, read_wanted(self._plan.wanted, self._limits, self._ctx), self._ctx))

    def _stop(self) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.unsubscribe(self)
