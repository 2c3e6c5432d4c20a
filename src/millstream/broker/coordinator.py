"""A coordinator: shards of a replicated machine, one for each partition of its internal topic that is led here.

Which shard is responsible for a name (a group, a transactional id) follows from Java's hash of the name, as in Kafka.
A shard comes to life when this broker becomes the leader of its partition: the partition is replayed in slices, so that
the loop is never held up for long, and requests hear COORDINATOR_LOAD_IN_PROGRESS until it is done. Where it cannot be
read, this broker is no coordinator of that partition; with the next leader epoch, or start, it is tried again.

A coordinator that is cut off from the cluster, and not from its clients, knows an old state: another has taken over.
What it writes is never committed, but many answers need nothing written, and some are final: a producer that heard that
it is fenced would give up, one that heard of the end of its last transaction would take it for that of the next. Where
that is so (`must_be_certain`) such a coordinator says nothing but that it is none (ADR 15). Members of groups are heard
as ever: they would lose their partitions while all controllers are away, and what they hear is never final.

Most doubts end well: a busy broker's heartbeats were acknowledged late, and it coordinates as before. So a request may
wait for the end of the doubt first (`doubt_s`). OffsetFetch does: librdkafka never repeats one that was answered with
NOT_COORDINATOR (its issue 5586), and the consumer, a member in good standing, reads nothing until it is restarted.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from millstream.broker.dispatch import Deferred
from millstream.broker.shard_loading import load_shard
from millstream.protocol.errors import BrokerError, CoordinatorNotAvailable, ErrorCode, NotCoordinator
from millstream.replicated import told_to_clients
from millstream.runtime.logs import Logger
from millstream.runtime.shard import Machine, Shard, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.node import Node
    from millstream.broker.partition import Partition
    from millstream.protocol.apis import CoordinatorLog
    from millstream.replicated import Decision, Token
    from millstream.settings.declare import Setting

M = TypeVar("M", bound=Machine)

# As often as this somebody may ask a coordinator that is cut off, or has lost all controllers.
CUT_OFF_PAUSE_S = 0.2
# How often a request that waits for certainty looks for it.
CERTAIN_EVERY_S = 0.05

_log = Logger("millstream.coordinator")


class Coordinator(Generic[M]):
    """All shards of one kind on this broker."""

    def __init__(
        self,
        node: Node,
        topic: str,
        kind: CoordinatorLog,
        make_machine: Callable[[int], M],
        on_effect: Callable[[Shard[M], Any], None],
        commit_timeout: Setting[int],
    ) -> None:
        self._node = node
        self.topic = topic
        self._kind = kind
        self._make_machine = make_machine
        self._on_effect = on_effect
        self._commit_timeout = commit_timeout
        self.shards: dict[int, Shard[M]] = {}
        self._loading: dict[int, asyncio.Task[None]] = {}
        self._tokens = count(1)
        # Requests under way: how each is answered, and how it is refused.
        self._requests: dict[Token, tuple[Deferred, Callable[[ErrorCode], Any]]] = {}

    # --- which shard

    def partition_of(self, name: str) -> int:
        """The partition that is responsible for `name`; COORDINATOR_NOT_AVAILABLE until the topic exists."""
        topic = self._node.image.topics.by_name.get(self.topic)
        if topic is None:
            raise CoordinatorNotAvailable
        return java_hash(name) % len(topic.partitions)

    def shard_of(self, name: str) -> Shard[M]:
        shard = self.shards.get(self.partition_of(name))
        if shard is None:
            raise NotCoordinator
        return shard

    def active_shards(self) -> list[Shard[M]]:
        """For requests that ask all of them (ListGroups); refused while one is loading."""
        return [self.shards[index] for index in sorted(self.shards)]

    # --- requests

    def submit(
        self,
        name: str,
        decide: Callable[[M, Token, int], Decision[Any]],
        *,
        refuse: Callable[[ErrorCode], Any],
        must_be_certain: bool = False,
        doubt_s: float = 0.0,
    ) -> Deferred:
        """Let the shard of `name` decide; `refuse` makes the response for an error code.

        Where this broker must be certain that it coordinates and is not, the request waits for up to `doubt_s`.
        """
        return self.submit_to(
            lambda: self.shard_of(name), decide, refuse=refuse, must_be_certain=must_be_certain, doubt_s=doubt_s
        )

    def submit_to(
        self,
        find: Callable[[], Shard[M]],
        decide: Callable[[M, Token, int], Decision[Any]],
        *,
        refuse: Callable[[ErrorCode], Any],
        must_be_certain: bool = False,
        doubt_s: float = 0.0,
    ) -> Deferred:
        token = next(self._tokens)
        deferred = Deferred(on_abandon=lambda: self._forget(token))
        self._requests[token] = (deferred, refuse)
        if must_be_certain:
            self._submit_certain(token, find, decide, self._node.loop.time() + doubt_s)
        else:
            self._submit(token, find, decide)
        return deferred

    def _submit(
        self, token: Token, find: Callable[[], Shard[M]], decide: Callable[[M, Token, int], Decision[Any]]
    ) -> None:
        try:
            find().submit(token, decide)
        except BrokerError as refusal:
            self._refuse(token, refusal.code)

    def _submit_certain(
        self,
        token: Token,
        find: Callable[[], Shard[M]],
        decide: Callable[[M, Token, int], Decision[Any]],
        deadline_s: float,
    ) -> None:
        """Once this broker is in touch; what is asked after `deadline_s` is decided in doubt."""
        if token not in self._requests:
            return  # its connection is gone
        if self._is_in_touch:
            self._submit(token, find, decide)
        elif self._node.loop.time() >= deadline_s or not _is_found(find):
            self._submit(token, find, partial(_decide_cut_off, decide))
        else:
            self._node.loop.call_later(CERTAIN_EVERY_S, self._submit_certain, token, find, decide, deadline_s)

    @property
    def _is_in_touch(self) -> bool:
        return self._node.membership.is_in_touch

    def _forget(self, token: Token) -> None:
        self._requests.pop(token, None)

    def _answer(self, token: Token, response: Any) -> None:
        waiting = self._requests.pop(token, None)
        if waiting is not None:
            waiting[0].finish(response)

    def _refuse(self, token: Token, code: ErrorCode) -> None:
        told = told_to_clients(code)
        if told is ErrorCode.NOT_COORDINATOR and not self._is_in_touch:
            # Who hears this looks for the coordinator, may be sent here again, and asks again without a pause.
            self._node.loop.call_later(CUT_OFF_PAUSE_S, self._finish_refused, token, told)
        else:
            self._finish_refused(token, told)

    def _finish_refused(self, token: Token, code: ErrorCode) -> None:
        waiting = self._requests.pop(token, None)
        if waiting is not None:
            deferred, refuse = waiting
            deferred.finish(refuse(code))

    # --- following leadership

    def elected(self, partition: Partition) -> None:
        """This broker leads a partition of the topic, maybe in a new epoch: what it knew of it may be old."""
        self.resigned(partition)
        shard = Shard(
            self._make_machine(partition.index),
            partition,
            self._node.ports.clock,
            answer=self._answer,
            on_effect=self._on_effect,
            refuse=self._refuse,
            commit_timeout_ms=self._node.settings[self._commit_timeout],
        )
        self.shards[partition.index] = shard
        if partition.log.end_offset == partition.log.start_offset:
            now_ms = self._node.ports.clock.wall_ms()
            shard.activate(partition.log.end_offset - 1, shard.machine.loaded(now_ms))
        else:
            loading = asyncio.get_running_loop().create_task(self._load(shard, partition))
            self._loading[partition.index] = loading
            loading.add_done_callback(partial(self._loaded, partition.index))

    async def _load(self, shard: Shard[M], partition: Partition) -> None:
        try:
            last_offset = await load_shard(self._kind, shard.machine, partition.log)
            if shard.stage is Stage.LOADING:
                now_ms = self._node.ports.clock.wall_ms()
                shard.activate(last_offset, shard.machine.loaded(now_ms))
        except Exception as error:  # noqa: BLE001  # whatever it is, without its log this is no coordinator
            shard.fail()
            _log.error(
                "a coordinator cannot read its log, and coordinates nothing of it until another broker leads the "
                "partition, or this one starts again",
                topic=self.topic,
                partition=partition.index,
                error=f"{type(error).__name__}: {error}",
            )

    def _loaded(self, index: int, loading: asyncio.Task[None]) -> None:
        if self._loading.get(index) is loading:  # and not its successor
            del self._loading[index]

    def resigned(self, partition: Partition) -> None:
        loading = self._loading.pop(partition.index, None)
        if loading is not None:
            loading.cancel()
        shard = self.shards.pop(partition.index, None)
        if shard is not None:
            shard.close()

    def close(self) -> None:
        for task in list(self._loading.values()):
            task.cancel()
        for shard in self.shards.values():
            shard.close()
        self.shards.clear()


def _is_found(find: Callable[[], Shard[M]]) -> bool:
    """Whether there is a shard here at all: one that was replaced, and knows it, is waited for in vain."""
    try:
        return find().stage is Stage.ACTIVE
    except BrokerError:
        return False


def _decide_cut_off(
    decide: Callable[[M, Token, int], Decision[Any]], machine: M, token: Token, now_ms: int
) -> Decision[Any]:
    """Only what is written can be said: its commit proves that nobody else coordinates."""
    try:
        decision = decide(machine, token, now_ms)
    except BrokerError as refusal:
        raise NotCoordinator from refusal
    if not decision.records:
        raise NotCoordinator
    return decision


@lru_cache(maxsize=1024)
def java_hash(text: str) -> int:
    """Java's String.hashCode of the text, made positive as Kafka does."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    # Kafka's Utils.abs: the smallest int has no positive twin and becomes 0.
    return 0 if signed == -(1 << 31) else abs(signed)
