"""The demo's shop: orders from seven cities, their payments, and now and then a stolen card, tried in a hurry."""

from __future__ import annotations

import json
import random
import threading
import time
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream import arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERS, PAYMENTS = "orders", "payments"
# Each use of a card that failed: what streams_fraud.py reads, and counts.
USES = "authorization-attempts"
CITIES = ("Amsterdam", "Berlin", "Cork", "Dresden", "Espoo", "Faro", "Ghent")
TICK_S = 0.1
ORDERS_PER_TICK = 50
ATTEMPTS = 5
# One in so many payments fails at the first attempt, with a card of its own.
FAILS = 20
# A stolen card turns up about once in so many ticks.
STOLEN_EVERY = 30


class Feed:
    """Writes in a thread of its own until its time is up; says what it has written."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._dice = random.Random(2026)
        self.orders = 0
        self.payments = 0
        self.paid = 0
        self.stolen: set[str] = set()

    def start(self, seconds: float | None) -> None:
        self._thread = threading.Thread(target=self._run, args=(seconds,), name="feed", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self, seconds: float | None) -> None:
        # One write for all of it: the batches of each tick are on their way while the next are made.
        arrow.write(self._servers, None, self._ticks(seconds))

    def _ticks(self, seconds: float | None) -> Iterator[pa.RecordBatch]:
        began = time.monotonic()
        tick = 0
        while not self._ended.is_set() and (seconds is None or time.monotonic() < began + seconds):
            yield self._tick(tick)
            tick += 1
            self._ended.wait(max(0.0, began + tick * TICK_S - time.monotonic()))

    def _tick(self, tick: int) -> pa.RecordBatch:
        dice = self._dice
        rows: list[tuple[str, str, dict[str, object]]] = []

        def pay(number: int, card: str, euros: int, *, ok: bool) -> None:
            rows.append((PAYMENTS, card, {"order": number, "card": card, "ok": ok}))
            if not ok:
                rows.append((USES, card, {"card_number": card, "amount": euros}))
            self.payments += 1

        for _ in range(ORDERS_PER_TICK):
            number, euros = self.orders, dice.randint(5, 500)
            self.orders += 1
            rows.append((ORDERS, str(number), {"order": number, "city": dice.choice(CITIES), "euros": euros}))
            card = f"card-{number}"
            if number % FAILS == 0:
                pay(number, card, euros, ok=False)
            pay(number, card, euros, ok=True)
            self.paid += 1
        if tick % STOLEN_EVERY == STOLEN_EVERY // 2:
            card = f"stolen-{tick}"
            self.stolen.add(card)
            for _ in range(ATTEMPTS):
                pay(-1, card, dice.randint(5, 500), ok=False)
        now_ms = time.time_ns() // 1_000_000
        return pa.record_batch(
            {
                "topic": [topic for topic, _, _ in rows],
                "key": [key for _, key, _ in rows],
                "value": [json.dumps(value) for _, _, value in rows],
                "timestamp": pa.array([now_ms] * len(rows), pa.int64()),
            }
        )
