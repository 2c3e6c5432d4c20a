"""How much replication may take: the limit on replicas that a move is filling (leader. and follower.replication.…).

PURE. A bucket that fills at the rate, up to one second's worth, and may go below zero: one answer of replication may be
larger than that, and is paid off before the next. Those who share a bucket take turns: they ask twice a second, and
whoever asks at the right moment once would do so again and again.
"""

from __future__ import annotations

UNLIMITED = 2**63 - 1
# Whoever has not asked for so long has no turn to lose.
ABSENT_AFTER_MS = 2_000


class Throttle:
    """One direction of one broker's replication."""

    __slots__ = ("_allowance", "_rate", "_seen_ms")

    def __init__(self) -> None:
        self._rate = UNLIMITED
        self._allowance = 0.0
        self._seen_ms = 0

    def follow(self, rate: int, now_ms: int) -> bool:
        """The rate in bytes per second, as it is set now; whether there is one at all."""
        if rate != self._rate:
            self._rate = rate
            self._allowance = float(rate)
            self._seen_ms = now_ms
        return rate != UNLIMITED

    def is_exceeded(self, now_ms: int) -> bool:
        return self.pause_ms(now_ms) > 0

    def pause_ms(self, now_ms: int) -> int:
        """How long until more may be taken; 0 if it may be now."""
        self._fill(now_ms)
        if self._allowance > 0 or self._rate == UNLIMITED:
            return 0
        # A rate of 0 stops the throttled replicas altogether: look again now and then.
        return 1000 if self._rate == 0 else min(1000, 1 + int(-self._allowance * 1000 / self._rate))

    def took(self, count_bytes: int, now_ms: int) -> None:
        self._fill(now_ms)
        self._allowance -= count_bytes

    def _fill(self, now_ms: int) -> None:
        passed_ms = max(0, now_ms - self._seen_ms)
        self._seen_ms = now_ms
        self._allowance = min(float(self._rate), self._allowance + self._rate * passed_ms / 1000)


class Turns:
    """In which order those are served who share a throttle."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        # Who -> when it asked last, the one whose turn it is first.
        self._waiting: dict[int, int] = {}

    def asks(self, who: int, now_ms: int) -> bool:
        """Whether it is this one's turn; if not, it waits for it from now on."""
        self._waiting[who] = now_ms
        for other, asked_ms in list(self._waiting.items()):
            if now_ms - asked_ms > ABSENT_AFTER_MS:
                del self._waiting[other]
        return next(iter(self._waiting)) == who

    def served(self, who: int) -> None:
        self._waiting.pop(who, None)


def is_throttled(entries: tuple[str, ...], partition: int, broker_id: int) -> bool:
    """Whether a topic's list (`partition:broker`, or `*`) names this replica."""
    return bool(entries) and (entries == ("*",) or f"{partition}:{broker_id}" in entries)
