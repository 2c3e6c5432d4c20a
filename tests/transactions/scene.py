"""A transaction coordinator without a broker: the machine, its log in memory, and the markers that it asks for.

Records go through their bytes on the way from a decision to `apply`, as they do in a broker, so that whatever a replay
would lose is lost at once.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from millstream.protocol.coordinator_frame import (
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator_key,
    encode_coordinator_value,
)
from millstream.protocol.errors import BrokerError, CoordinatorLoading, ErrorCode
from millstream.replicated import Schedule
from millstream.settings.effective import Settings
from millstream.transactions.ending import WriteMarkers, decide_complete, decide_end
from millstream.transactions.machine import TransactionMachine
from millstream.transactions.participants import decide_add_partitions, decide_verify
from millstream.transactions.producers import Producer, decide_init_producer_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.replicated import Decision
    from millstream.transactions.transaction import Transaction

TIMEOUT_MS = 60_000


class Scene:
    """`log_is_down` makes every append fail, `has_ids` empties the stock of producer ids."""

    def __init__(self, version: int = 2, **settings: str) -> None:
        self.version = version
        self.settings = Settings({name.replace("_", "."): value for name, value in settings.items()})
        self.now_ms = 1_000_000
        self.log: list[tuple[bytes, bytes | None]] = []
        self.log_is_down = False
        self.has_ids = True
        self.markers: list[WriteMarkers] = []
        self.timers: dict[Any, int] = {}
        self._ids = count(1000)
        self.machine = self.new_machine()

    def new_machine(self) -> TransactionMachine:
        return TransactionMachine(0, lambda: self.settings, lambda: self.version, self._new_id)

    def _new_id(self) -> int:
        if not self.has_ids:
            raise CoordinatorLoading
        return next(self._ids)

    # --- what a shard does

    def carry_out(self, decision: Decision[Any]) -> Any:
        if decision.records and self.log_is_down:
            if decision.undo is not None:
                self.carry_out(decision.undo(ErrorCode.NOT_ENOUGH_REPLICAS))
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        for record in decision.records:
            value = None if record.value is None else encode_coordinator_value(record.value, record.version)
            self.log.append((encode_coordinator_key(record.key), value))
            _apply(self.machine, *self.log[-1])
        for timer in decision.timers:
            assert isinstance(timer, Schedule)
            self.timers[timer.key] = self.now_ms + timer.delay_ms
        self.markers += decision.effects
        return decision.response

    def attempt(self, decide: Callable[[], Decision[Any]]) -> Any:
        """The response, or the code of the refusal."""
        try:
            return self.carry_out(decide())
        except BrokerError as refusal:
            return refusal.code

    def crash(self) -> None:
        """A new coordinator on what the log holds; markers that were not written are asked for again."""
        self.machine = self.replayed()
        self.markers = []
        self.timers = {}
        for timer in self.machine.loaded(self.now_ms):
            assert isinstance(timer, Schedule)
            self.timers[timer.key] = self.now_ms + timer.delay_ms
        self.fire(("resume",))

    def replayed(self) -> TransactionMachine:
        machine = self.new_machine()
        for key, value in self.log:
            _apply(machine, key, value)
        return machine

    def fire(self, key: tuple[Any, ...]) -> None:
        self.timers.pop(key, None)
        self.carry_out(self.machine.on_timer(key, self.now_ms))

    def pass_time(self, ms: int) -> None:
        """Timers that come due fire, in their order."""
        until_ms = self.now_ms + ms
        while due := [key for key, at_ms in self.timers.items() if at_ms <= until_ms]:
            first = min(due, key=self.timers.__getitem__)
            self.now_ms = max(self.now_ms, self.timers[first])
            self.fire(first)
        self.now_ms = until_ms

    # --- what clients and markers do

    def init(self, name: str = "t", had: tuple[int, int] | None = None, timeout_ms: int = TIMEOUT_MS) -> Any:
        """(producer id, epoch), or the error code."""
        expected = None if had is None else Producer(*had)
        heard = self.attempt(lambda: decide_init_producer_id(self.machine, name, timeout_ms, expected, self.now_ms))
        if isinstance(heard, ErrorCode):
            return heard
        return (heard.producer_id, heard.producer_epoch) if heard.error_code == 0 else ErrorCode(heard.error_code)

    def add(self, producer: tuple[int, int], *partitions: int, name: str = "t", client_version: int = 2) -> ErrorCode:
        places = [("topic", index) for index in partitions]
        code: ErrorCode = self.attempt(
            lambda: decide_add_partitions(
                self.machine,
                name,
                *producer,
                places,
                client_version=client_version,
                answer=ErrorCode.NONE,
                now_ms=self.now_ms,
            )
        )
        return code

    def verify(self, producer: tuple[int, int], *partitions: int, name: str = "t") -> Any:
        places = [("topic", index) for index in partitions]
        return self.attempt(lambda: decide_verify(self.machine, name, *producer, places))

    def end(self, producer: tuple[int, int], *, commit: bool, name: str = "t", client_version: int = 2) -> Any:
        """(producer id, epoch) to go on with, or the error code."""
        heard = self.attempt(
            lambda: decide_end(
                self.machine,
                name,
                *producer,
                committed=commit,
                client_version=client_version,
                now_ms=self.now_ms,
            )
        )
        return heard if isinstance(heard, ErrorCode) else (heard.producer_id, heard.producer_epoch)

    def write_markers(self) -> list[WriteMarkers]:
        """All that was asked for is written; the transactions complete."""
        written, self.markers = self.markers, []
        for order in written:
            self.complete(order)
        return written

    def complete(self, order: WriteMarkers) -> None:
        self.carry_out(
            decide_complete(self.machine, order.transactional_id, order.producer_id, order.epoch, self.now_ms)
        )

    def state(self, name: str = "t") -> Transaction:
        return self.machine.transactions[name]


def _apply(machine: TransactionMachine, key: bytes, value: bytes | None) -> None:
    decoded = decode_coordinator_key("transactions", key)
    machine.apply(
        decoded,
        None if value is None else decode_coordinator_value("transactions", decoded, value)[0],
        transaction=None,
        offset=0,
    )
