"""Drives one replicated machine on one partition: append -> apply -> commit -> answer, and its timers.

A decision's records are appended and applied in the same call, so decisions never interleave; the answers wait until
everything that the decision could have read is committed. With one replica in sync that is the case when the append
returns, and the answer leaves without a task or a future. A refusal is an answer too: it may have read what was
appended a moment ago and will be lost. Nobody waits for that longer than the commit timeout: too few replicas may be
left for a long time, and a client that hears so asks again.

A shard is *loading* until it has replayed its partition (requests hear COORDINATOR_LOAD_IN_PROGRESS), then *active*;
when this broker leads the partition no longer, everybody who waits hears NOT_COORDINATOR and its timers stop. One whose
partition cannot be read has *failed*, and is no coordinator either, until another broker leads or this one starts anew.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from millstream.protocol.coordinator_frame import encode_coordinator_key, encode_coordinator_value
from millstream.protocol.errors import BrokerError, CoordinatorLoading, ErrorCode, NotCoordinator
from millstream.records.building import encode_batch
from millstream.replicated import Cancel, Decision, Schedule
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from millstream.replicated import Record, Token
    from millstream.runtime.ports import Clock

_log = Logger("millstream.shard")
# When a timer's decision could not be written.
AGAIN_AFTER_MS = 500


class Machine(Protocol):
    """What a shard drives."""

    def apply(self, key: Any, value: Any | None, *, transaction: tuple[int, int] | None, offset: int) -> None:
        """The only writer of stored state; `value` is None for a tombstone."""

    def end_transaction(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """A marker was written to the partition: what was applied with this transaction becomes real, or nothing."""

    def loaded(self, now_ms: int) -> tuple[Schedule | Cancel, ...]:
        """The log was replayed: the timers that the state calls for."""

    def on_timer(self, key: Hashable, now_ms: int) -> Decision[Any]: ...


class Journal(Protocol):
    """The partition underneath, as a shard sees it."""

    def append_internal(self, batch: bytearray, now_ms: int) -> int:
        """Append as the leader; the offset of the batch's last record. BrokerError if it cannot be written."""

    @property
    def is_offline(self) -> bool:
        """Whether its files have failed: nothing that is not committed by now ever will be, here."""

    def is_committed(self, last_offset: int) -> bool: ...
    def when_committed(self, last_offset: int, listener: Callable[[], None]) -> None:
        """Call back when `last_offset` is committed, and also when that may have become impossible."""


M = TypeVar("M", bound=Machine)


class Stage(Enum):
    """The life of a shard."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


class Shard(Generic[M]):
    """One machine and its partition."""

    def __init__(
        self,
        machine: M,
        journal: Journal,
        clock: Clock,
        *,
        answer: Callable[[Token, Any], None],
        on_effect: Callable[[Shard[M], Any], None],
        refuse: Callable[[Token, ErrorCode], None],
        commit_timeout_ms: int,
    ) -> None:
        self.machine = machine
        self.stage = Stage.LOADING
        self._journal = journal
        self._clock = clock
        self._answer = answer
        self._refuse = refuse
        self._on_effect = on_effect
        self._last_offset = -1
        self._timers: dict[Hashable, asyncio.TimerHandle] = {}
        self._waiting: dict[Token, None] = {}
        # Those of them whose answer is known and not committed, each with the loop's time at which it is given up; the
        # first is the one whose time comes first.
        self._uncommitted: dict[Token, float] = {}
        self._commit_timeout_s = commit_timeout_ms / 1000
        self._giving_up: asyncio.TimerHandle | None = None

    def activate(self, last_offset: int, timers: tuple[Schedule | Cancel, ...] = ()) -> None:
        """The log has been replayed up to `last_offset`."""
        self.stage = Stage.ACTIVE
        self._last_offset = last_offset
        self._set_timers(timers)

    def fail(self) -> None:
        """The log cannot be read: what this machine has of it must not be taken for the whole."""
        if self.stage is Stage.LOADING:
            self.stage = Stage.FAILED

    def submit(self, token: Token, decide: Callable[[M, Token, int], Decision[Any]]) -> None:
        """Decide on a request. Its answer comes through `answer(token, response)`, at once or later.

        A BrokerError of the decision changes nothing. It is raised here where all that it could have read is committed,
        and comes through `refuse(token, code)` later where it is not.
        """
        self._check_active()
        try:
            decision = decide(self.machine, token, self._clock.wall_ms())
        except NotCoordinator:
            raise  # not a word about what the machine knows
        except BrokerError as refusal:
            if self._journal.is_committed(self._last_offset):
                raise
            self._waiting[token] = None
            self._give_up_later(token)
            self._once_committed(partial(self._refuse_waiting, token, refusal.code), self._last_offset)
            return
        self._waiting[token] = None
        self._carry_out(decision, token)

    def run(self, decide: Callable[[M, int], Decision[Any]]) -> None:
        """Carry out a decision that answers no request of its own."""
        self._check_active()
        self._carry_out(decide(self.machine, self._clock.wall_ms()), None)

    def end_transaction(self, marker: bytearray, producer_id: int, producer_epoch: int, *, committed: bool) -> int:
        """Append a transaction's marker to the shard's own partition and apply it; the marker's offset."""
        self._check_active()
        self._last_offset = last = self._journal.append_internal(marker, self._clock.wall_ms())
        self.machine.end_transaction(producer_id, producer_epoch, committed=committed)
        return last

    def _check_active(self) -> None:
        if self.stage is Stage.LOADING:
            raise CoordinatorLoading
        if self.stage is not Stage.ACTIVE:
            raise NotCoordinator

    def _carry_out(self, decision: Decision[Any], token: Token | None) -> bool:
        """False if it could not be written, and the decision does not say what comes of that."""
        if decision.records:
            try:
                self._append(decision)
            except BrokerError as failure:
                if token is not None:
                    self._waiting.pop(token, None)
                if decision.undo is not None:
                    self._carry_out(decision.undo(failure.code), None)
                if token is not None:
                    self._refuse(token, failure.code)
                return decision.undo is not None
        self._set_timers(decision.timers)
        if not self._journal.is_committed(self._last_offset):
            for reply in decision.replies:
                self._give_up_later(reply.token)
            if token is not None and decision.response is not None:
                self._give_up_later(token)
        self._once_committed(partial(self._speak, decision, token), self._last_offset)
        return True

    def _append(self, decision: Decision[Any]) -> None:
        now_ms = self._clock.wall_ms()
        producer_id, producer_epoch = decision.transaction or (-1, -1)
        batch = encode_batch(
            [_encoded(record, now_ms) for record in decision.records],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=decision.transaction is not None,
        )
        self._last_offset = last = self._journal.append_internal(batch, now_ms)
        offset = last - len(decision.records) + 1
        for record in decision.records:
            self.machine.apply(record.key, record.value, transaction=decision.transaction, offset=offset)
            offset += 1

    def _once_committed(self, speak: Callable[[], None], last_offset: int) -> None:
        """Called again whenever the partition lets go of those who wait: not only when `last_offset` is committed, but
        also when this broker stops leading (`close` has refused everybody by then), and when an append has failed."""
        if self.stage is not Stage.ACTIVE:
            return
        if self._journal.is_committed(last_offset):
            speak()
        elif self._journal.is_offline:
            # What the machine holds now may be lost: whoever reads the log elsewhere, or here again, knows better.
            self.close()
        else:
            self._journal.when_committed(last_offset, partial(self._once_committed, speak, last_offset))

    def _speak(self, decision: Decision[Any], token: Token | None) -> None:
        for reply in decision.replies:
            self._forget(reply.token)
            self._answer(reply.token, reply.response)
        if token is not None and decision.response is not None:
            self._forget(token)
            self._answer(token, decision.response)
        for effect in decision.effects:
            self._on_effect(self, effect)

    def _refuse_waiting(self, token: Token, code: ErrorCode) -> None:
        if token in self._waiting:
            self._forget(token)
            self._refuse(token, code)

    def _forget(self, token: Token) -> None:
        self._waiting.pop(token, None)
        self._uncommitted.pop(token, None)

    # --- not waiting for ever

    def _give_up_later(self, token: Token) -> None:
        loop = asyncio.get_running_loop()
        self._uncommitted.pop(token, None)
        self._uncommitted[token] = loop.time() + self._commit_timeout_s
        if self._giving_up is None:
            self._giving_up = loop.call_later(self._commit_timeout_s, self._give_up)

    def _give_up(self) -> None:
        """What was written stays, and may be committed yet: who asks again finds it."""
        loop = asyncio.get_running_loop()
        self._giving_up = None
        while self._uncommitted:
            token, deadline_s = next(iter(self._uncommitted.items()))
            if deadline_s > loop.time():
                self._giving_up = loop.call_at(deadline_s, self._give_up)
                return
            self._refuse_waiting(token, ErrorCode.REQUEST_TIMED_OUT)
            self._uncommitted.pop(token, None)

    # --- timers

    def _set_timers(self, timers: tuple[Schedule | Cancel, ...]) -> None:
        for timer in timers:
            known = self._timers.pop(timer.key, None)
            if known is not None:
                known.cancel()
            if isinstance(timer, Schedule):
                # The largest delay of the protocol is 2^31 ms; nothing overflows (KAFKA-13126).
                self._timers[timer.key] = asyncio.get_running_loop().call_later(
                    max(0, timer.delay_ms) / 1000, self._fire, timer.key
                )

    def _fire(self, key: Hashable) -> None:
        self._timers.pop(key, None)
        if self.stage is not Stage.ACTIVE:
            return
        try:
            if not self._carry_out(self.machine.on_timer(key, self._clock.wall_ms()), None):
                # There are too few replicas, or the disk is full. What is due stays due: a member that is gone would
                # keep its partitions for ever.
                self._set_timers((Schedule(key, AGAIN_AFTER_MS),))
        except BrokerError as error:
            _log.warning("a timer's decision was refused", key=str(key), error=str(error))

    def close(self) -> None:
        """This broker does not coordinate these any more."""
        self.stage = Stage.CLOSED
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._giving_up is not None:
            self._giving_up.cancel()
        self._uncommitted.clear()
        waiting, self._waiting = self._waiting, {}
        for token in waiting:
            self._refuse(token, ErrorCode.NOT_COORDINATOR)


def _encoded(record: Record, now_ms: int) -> tuple[bytes, bytes | None, tuple[()], int]:
    value = None if record.value is None else encode_coordinator_value(record.value, record.version)
    return encode_coordinator_key(record.key), value, (), now_ms
