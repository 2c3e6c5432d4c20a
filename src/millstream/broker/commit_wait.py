"""A Produce whose batches are appended and waits for the high watermark to pass all of them, or for its time to be up.

Each batch is judged in the call that ends its wait, and not when all are done: by then this broker may follow another
leader, which has written something else at the same offset.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Deferred
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from millstream.broker.partition import Partition
    from millstream.protocol.messages.produce import PartitionProduceResponse, ProduceResponse

    Waiting = list[tuple[Partition, int, PartitionProduceResponse]]


class CommitWait:
    """`failed` is called with the response before it goes out, if something in it was refused."""

    __slots__ = ("_any_failed", "_failed", "_left", "_response", "_timer", "deferred")

    def __init__(
        self,
        loop: AbstractEventLoop,
        timeout_ms: int,
        response: ProduceResponse,
        waiting: Waiting,
        failed: Callable[[ProduceResponse], None],
    ) -> None:
        self._response = response
        self._left = dict(enumerate(waiting))
        self._failed = failed
        self._any_failed = False
        self._timer = loop.call_later(max(0, timeout_ms) / 1000, self._time_is_up)
        self.deferred = Deferred(on_abandon=self._timer.cancel)
        for number, (partition, last_offset, _) in enumerate(waiting):
            partition.when_committed(last_offset, partial(self._one_done, number))

    def _one_done(self, number: int) -> None:
        if number in self._left:
            self._judge(number)
            if not self._left:
                self._timer.cancel()
                self._finish()

    def _time_is_up(self) -> None:
        for number in list(self._left):
            self._judge(number)
        self._finish()

    def _judge(self, number: int) -> None:
        partition, last_offset, answer = self._left.pop(number)
        why_not = partition.why_not_acknowledged(last_offset)
        if why_not is not ErrorCode.NONE:
            answer.error_code = why_not
            answer.base_offset = -1
            self._any_failed = True

    def _finish(self) -> None:
        if self._any_failed:
            self._failed(self._response)
        self.deferred.finish(self._response)
