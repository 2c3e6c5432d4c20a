"""A producer that never stops: a record every few milliseconds, and when each was acknowledged.

It is librdkafka as an application would run it where fail-over matters: idempotent, acks=all, everything at its default
but the time after which it gives up on a request that is not answered. That one is a minute by default, and a broker
that is stopped, not dead, would be waited for so long, however quick its cluster is. Both contenders get the same.
"""

from __future__ import annotations

import itertools
import threading
import time
from functools import partial
from typing import Any, NamedTuple, Self

from confluent_kafka import Producer
from tests.support.waiting import wait_until

EVERY_S = 0.002
REQUEST_TIMEOUT_MS = 1_000


class _Acknowledged(NamedTuple):
    handed_over: float
    acknowledged: float


class SteadyProducer:
    """Runs while it is entered. Times are those of `time.perf_counter`."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                "socket.timeout.ms": REQUEST_TIMEOUT_MS,
                "log_level": 0,
            }
        )
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="steady-producer", daemon=True)
        self._acknowledged: list[_Acknowledged] = []
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self.next_acknowledged(time.perf_counter())
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self._producer.flush(60)

    def _run(self) -> None:
        while not self._ending.is_set():
            told = partial(self._delivered, time.perf_counter())
            self._producer.produce(self._topic, b"steady", partition=0, on_delivery=told)
            self._producer.poll(EVERY_S)

    def _delivered(self, handed_over: float, error: Any, _message: Any) -> None:
        if error is None:
            self._acknowledged.append(_Acknowledged(handed_over, time.perf_counter()))
        else:
            self.failures.append(str(error))

    def next_acknowledged(self, after: float, within_s: float = 120) -> float:
        """When the first record was acknowledged that was handed over after that moment.

        A record that was under way then may have been acknowledged by the very leader whose end is measured.
        """

        def found() -> float | None:
            # From the end: the list is long, and what is looked for is new.
            first = None
            for each in reversed(self._acknowledged):
                if each.handed_over <= after:
                    break
                first = each.acknowledged
            return first

        return wait_until(found, "an acknowledged record", within_s=within_s, every_s=0.002)

    def longest_gap_s(self, since: float) -> float:
        """The longest time without an acknowledgement from then until now."""
        times = [since, *(each.acknowledged for each in self._acknowledged if each.acknowledged > since)]
        return max(later - earlier for earlier, later in itertools.pairwise(times))
