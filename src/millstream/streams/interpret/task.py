"""The one task that the driver runs: its queues, its clocks, and the record that is being processed.

What a topology writes to a topic that it also reads comes back as a record of that topic, after the record that caused
it is done. If several topics have records waiting, the one whose first record is oldest is next, as in Kafka Streams.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[[Any, Any, int, Any], None]
    Kept = dict[bytes, Any]
    Save = Callable[[], Kept]
    Load = Callable[[Kept], None]


class RecordMetadata(NamedTuple):
    """Where the record that is being processed came from."""

    topic: str
    partition: int
    offset: int


class Punctuation:
    """A function that is called at intervals of stream time or of wall-clock time."""

    def __init__(self, next_ms: int, interval_ms: int, call: Callable[[int], None]) -> None:
        self.next_ms = next_ms
        self._interval_ms = interval_ms
        self._call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def run(self, now_ms: int) -> None:
        """Call it, and set the next time: intervals that were missed are not made up for."""
        due_ms = self.next_ms
        self.next_ms += self._interval_ms
        if now_ms >= self.next_ms:
            self.next_ms = due_ms + ((now_ms - due_ms) // self._interval_ms + 1) * self._interval_ms
        self._call(now_ms)


class Task:
    """Queues and clocks."""

    def __init__(self, wall_clock_ms: int) -> None:
        self.handlers: dict[str, Handler] = {}
        # Topics whose records have their time in their content.
        self.clocks: dict[str, Callable[[Any, Any, int], int]] = {}
        self.stream_time_ms = -1
        self.wall_clock_ms = wall_clock_ms
        self.dropped: Counter[str] = Counter()
        self.topic: str | None = None
        self.offsets: defaultdict[str, int] = defaultdict(int)
        self.queues: dict[str, deque[tuple[Any, Any, int, Any]]] = {}
        self._busy = False
        self._by_stream_time: list[Punctuation] = []
        self._by_wall_clock: list[Punctuation] = []
        # What operators know besides their stores, by the name of their node: how it is read, and how it is put back.
        self.kept: dict[str, tuple[Save, Load]] = {}
        self.keeping = ""

    def keep(self, save: Save, load: Load) -> None:
        """Something that the node which is being wired must know again after a restart.

        It is a mapping of bytes to numbers, bytes and lists of them, so that whoever stores it can store what changed.
        """
        self.kept[self.keeping] = (save, load)

    def saved_clocks(self) -> Kept:
        """Stream time, and when punctuations are due next."""
        return {b"": [self.stream_time_ms, [each.next_ms for each in self._by_stream_time]]}

    def load_clocks(self, kept: Kept) -> None:
        self.stream_time_ms, due = kept.get(b"", [-1, []])
        for punctuation, next_ms in zip(self._by_stream_time, due, strict=False):
            punctuation.next_ms = next_ms

    def drop(self, reason: str) -> None:
        """A record is left out, for a reason that Kafka Streams counts too."""
        self.dropped[reason] += 1

    @property
    def metadata(self) -> RecordMetadata | None:
        if self.topic is None:
            return None
        return RecordMetadata(self.topic, 0, self.offsets[self.topic] - 1)

    def enqueue(self, topic: str, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        """A record for a topic that the topology reads."""
        if topic in self.clocks:
            timestamp = self.clocks[topic](key, value, timestamp)
        queue = self.queues.get(topic)
        if queue is None:
            queue = self.queues[topic] = deque()
        queue.append((key, value, timestamp, headers))

    def run(self) -> None:
        """Process until nothing waits."""
        if self._busy:
            return
        self._busy = True
        try:
            while self.queues:
                topic = self._next_topic()
                queue = self.queues.pop(topic)
                key, value, timestamp, headers = queue.popleft()
                if queue:
                    # Behind the others: topics whose records are equally old take turns.
                    self.queues[topic] = queue
                self.process(topic, key, value, timestamp, headers)
        finally:
            self._busy = False

    def _next_topic(self) -> str:
        queues = self.queues
        if len(queues) == 1:
            return next(iter(queues))
        return min(queues, key=lambda topic: queues[topic][0][2])

    def process(self, topic: str, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        """One record, and the punctuations that its time makes due."""
        if timestamp > self.stream_time_ms:  # noqa: PLR1730  a call of max costs more than all the rest here
            self.stream_time_ms = timestamp
        self.topic = topic
        self.offsets[topic] += 1
        self.handlers[topic](key, value, timestamp, headers)
        self.topic = None
        if self._by_stream_time:
            self._punctuate(self._by_stream_time, self.stream_time_ms)

    def schedule(self, interval_ms: int, call: Callable[[int], None], *, stream_time: bool) -> Punctuation:
        """From now on at this interval; by stream time the first record is due at once, as in Kafka Streams."""
        if interval_ms < 1:
            raise ValueError(f"a punctuation every {interval_ms} ms: at least 1")
        next_ms = 0 if stream_time else self.wall_clock_ms + interval_ms
        punctuation = Punctuation(next_ms, interval_ms, call)
        (self._by_stream_time if stream_time else self._by_wall_clock).append(punctuation)
        return punctuation

    def advance_wall_clock(self, by_ms: int) -> None:
        self.wall_clock_ms += by_ms
        self._punctuate(self._by_wall_clock, self.wall_clock_ms)
        self.run()

    def _punctuate(self, punctuations: list[Punctuation], now_ms: int) -> None:
        due = [each for each in punctuations if each.next_ms <= now_ms and not each.cancelled]
        for punctuation in sorted(due, key=lambda each: each.next_ms):
            punctuation.run(now_ms)
        punctuations[:] = [each for each in punctuations if not each.cancelled]
